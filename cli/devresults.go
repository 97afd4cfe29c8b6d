package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"millrace/config"
	"millrace/kafka"
	"millrace/record"
)

// results writes what a job puts out, as it is committed. Its methods may be called from any goroutine.
type results struct {
	out    io.Writer
	colour bool
	limit  int // lines a second and sink; 0: no limit
	clock  func() time.Time

	mu    sync.Mutex
	shown map[string]*shown // by sink
}

// shown counts a sink's lines of one second.
type shown struct {
	second        int64
	lines, hidden int
}

func newResults(out io.Writer, limit int) *results {
	return &results{out: out, colour: isTerminal(out) && os.Getenv("NO_COLOR") == "", limit: limit, clock: time.Now, shown: map[string]*shown{}}
}

// note writes a line that is no result.
func (r *results) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(r.out, text)
}

// record writes one result, or counts it when the sink has had its lines of this second.
func (r *results) record(sink string, rec *record.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock()
	s := r.shown[sink]
	if s == nil {
		s = &shown{}
		r.shown[sink] = s
	}
	r.settle(sink, s, now)
	s.second = now.Unix()
	if r.limit > 0 && s.lines >= r.limit {
		s.hidden++
		return
	}
	s.lines++
	fmt.Fprintf(r.out, "%s  %s  %s  %s\n", now.Format(time.TimeOnly), r.paint(sink, rec), printable(rec.Key, "-"), describeResult(rec))
}

// quiet says how many results were left out, once their second is over.
func (r *results) quiet(sink string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.shown[sink]; s != nil {
		r.settle(sink, s, r.clock())
	}
}

func (r *results) settle(sink string, s *shown, now time.Time) {
	if s.second == now.Unix() {
		return
	}
	if s.hidden > 0 {
		fmt.Fprintf(r.out, "%s  %s  … and %d more\n", time.Unix(s.second, 0).Format(time.TimeOnly), sink, s.hidden)
	}
	s.lines, s.hidden = 0, 0
}

// Headers that the job gives to late records and dead letters.
const (
	headerLateBy = "millrace-late-by-ms"
	headerError  = "__streams.errors.message"
	headerReason = "__streams.errors.exception"
	headerTopic  = "__streams.errors.topic"
)

// paint colours a sink's name by what the record is: a result, a late record, a dead letter.
func (r *results) paint(sink string, rec *record.Record) string {
	if !r.colour {
		return sink
	}
	colour := "36"
	if _, ok := header(rec.Headers, headerLateBy); ok {
		colour = "33"
	} else if _, ok := header(rec.Headers, headerError); ok {
		colour = "31"
	}
	return "\x1b[" + colour + "m" + sink + "\x1b[0m"
}

// describeResult is the value, after what the headers say about it.
func describeResult(rec *record.Record) string {
	value := windowTimes(printable(rec.Value, "(tombstone)"))
	if late, ok := header(rec.Headers, headerLateBy); ok {
		if ms, err := strconv.ParseInt(string(late), 10, 64); err == nil {
			return fmt.Sprintf("late by %s  %s", (time.Duration(ms) * time.Millisecond).Round(100*time.Millisecond), value)
		}
	}
	if message, ok := header(rec.Headers, headerError); ok {
		return printable(message, "") + "  " + value
	}
	return value
}

// printable keeps a record from steering the terminal, and stands in for one that is null.
func printable(b []byte, null string) string {
	if b == nil {
		return null
	}
	text := string(b)
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

var windowTime = regexp.MustCompile(`"(window_start|window_end)":(\d{13})\b`)

// windowTimes writes the bounds of windows as times of day: people read them, the topic has milliseconds.
func windowTimes(value string) string {
	return windowTime.ReplaceAllStringFunc(value, func(text string) string {
		m := windowTime.FindStringSubmatch(text)
		ms, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil {
			return text
		}
		return fmt.Sprintf("%q:%q", m[1], time.UnixMilli(ms).Format(time.TimeOnly))
	})
}

// progressShown remembers how far results were shown, so that a restart of the job shows each of them once.
type progressShown struct {
	mu   sync.Mutex
	next map[record.TopicPartition]record.Offset
}

func newProgressShown() *progressShown {
	return &progressShown{next: map[record.TopicPartition]record.Offset{}}
}

func (p *progressShown) get(tp record.TopicPartition) (record.Offset, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next, ok := p.next[tp]
	return next, ok
}

func (p *progressShown) set(tp record.TopicPartition, next record.Offset) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next[tp] = next
}

// output is one partition of a topic that the job writes to.
type output struct {
	sink string
	from record.TopicPartition
}

// outputs lists what is shown: the partitions of all sinks, from now on.
func (d *dev) outputs(ctx context.Context, client *kafka.Client, job *config.Config) ([]output, error) {
	var list []output
	for _, t := range devTopics(job.Spec) {
		if !t.output {
			continue
		}
		n, err := client.Partitions(t.name)
		if err != nil {
			return nil, err
		}
		for p := range n {
			tp := record.TopicPartition{Topic: t.name, Partition: p}
			if _, ok := d.seen.get(tp); !ok {
				end, err := client.EndOffset(ctx, tp)
				if err != nil {
					return nil, err
				}
				d.seen.set(tp, end)
			}
			list = append(list, output{t.from, tp})
		}
	}
	return list, nil
}

// show writes an output's committed records until ctx ends.
func (d *dev) show(ctx context.Context, client *kafka.Client, o output) error {
	reader, err := client.NewReader(o.from)
	if err != nil {
		return err
	}
	defer reader.Close()
	for {
		next, _ := d.seen.get(o.from)
		batch, err := reader.Read(ctx, next)
		if err != nil {
			return ended(ctx, err)
		}
		for i := range batch.Records {
			d.results.record(o.sink, &batch.Records[i])
		}
		d.results.quiet(o.sink)
		d.seen.set(o.from, batch.Next)
		if ctx.Err() != nil {
			return nil
		}
	}
}
