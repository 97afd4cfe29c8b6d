package observe

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"millrace/record"
)

// summaryEvery is how often the summary line is written: often enough to find the hour of a change in an old log, and
// seldom enough not to be the log.
const summaryEvery = 2 * time.Minute

// interval collects what the next summary line says. Guarded by Observer.mu.
type interval struct {
	since                       time.Time
	progress                    time.Time // of the last restore line
	in, out, late, deadLettered int64
	commits                     durations
}

// maxDurations bounds the memory of one interval; beyond it the newest overwrite the oldest.
const maxDurations = 4096

// durations remembers how long the commits of one interval took.
type durations struct {
	ring []time.Duration
	n    int
}

func (d durations) add(v time.Duration) durations {
	if len(d.ring) < maxDurations {
		d.ring = append(d.ring, v)
	} else {
		d.ring[d.n%maxDurations] = v
	}
	d.n++
	return d
}

// p99 is the duration that one in a hundred exceeds.
func (d durations) p99() time.Duration {
	if len(d.ring) == 0 {
		return 0
	}
	sorted := slices.Clone(d.ring)
	slices.Sort(sorted)
	return sorted[int(math.Ceil(float64(len(sorted))*0.99))-1]
}

// Run calls Tick once a second until ctx is done.
func (o *Observer) Run(ctx context.Context) error {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			o.Tick(o.opt.Clock())
		}
	}
}

// Tick writes what is due at now: the summary, the progress of restores, and warnings that were held back.
func (o *Observer) Tick(now time.Time) {
	o.restoreLine(now)
	o.flushSamples(now)
	o.restoreLevel(now)

	o.mu.Lock()
	took := now.Sub(o.summary.since)
	if took < summaryEvery {
		o.mu.Unlock()
		return
	}
	s := o.summary
	o.summary = interval{since: now, progress: s.progress}
	var state int64
	for _, st := range o.stores {
		state += st.Bytes
	}
	lag := totalLag(o.marks)
	delay := "?"
	if d, ok := worstDelay(o.marks, now); ok {
		delay = short(d).String()
	}
	o.mu.Unlock()

	perSecond := func(n int64) string { return fmt.Sprintf("%.0f/s", float64(n)/took.Seconds()) }
	o.log.Info("summary", zap.String("in", perSecond(s.in)), zap.String("out", perSecond(s.out)),
		zap.Int64("lag", lag), zap.String("watermark_delay", delay), zap.Int("commits", s.commits.n),
		zap.Duration("p99_commit", short(s.commits.p99())), zap.String("state", byteText(state)),
		zap.Int64("late", s.late), zap.Int64("dlq", s.deadLettered))
}

// byteText writes a size with a binary unit.
func byteText(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%dB", n)
	}
	f, i := float64(n)/1024, 0
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0") + units[i:i+1] + "iB"
}

func compareMarks(a, b record.WatermarkStatus) int {
	return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// delayBySource is, for each source, how far its slowest partition's watermark is behind the wall clock. Idle
// partitions hold nothing back and are left out, as are those that had no record yet.
func delayBySource(marks []record.WatermarkStatus, now time.Time) map[string]time.Duration {
	delays := map[string]time.Duration{}
	for _, w := range marks {
		if w.Idle || w.Watermark == record.NoTime {
			continue
		}
		d := time.Duration(now.UnixMilli()-w.Watermark) * time.Millisecond
		if old, ok := delays[w.Source]; !ok || d > old {
			delays[w.Source] = d
		}
	}
	return delays
}

func worstDelay(marks []record.WatermarkStatus, now time.Time) (worst time.Duration, ok bool) {
	for _, d := range delayBySource(marks, now) {
		if !ok || d > worst {
			worst, ok = d, true
		}
	}
	return worst, ok
}
