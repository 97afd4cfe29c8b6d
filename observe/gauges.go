package observe

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"millrace/record"
)

// setter emits one sample.
type setter func(d *prometheus.Desc, v float64, labels ...string)

// sums adds up samples by their labels: a name and, where wanted, a partition.
type sums map[[2]string]float64

func (s sums) add(name string, partition int32, v float64, perPartition bool) {
	k := [2]string{name}
	if perPartition {
		k[1] = strconv.Itoa(int(partition))
	}
	s[k] += v
}

func (s sums) emit(set setter, d *prometheus.Desc) {
	for k, v := range s {
		if k[1] == "" {
			set(d, v, k[0])
		} else {
			set(d, v, k[0], k[1])
		}
	}
}

// collectTasks emits what belongs to tasks and their stores. The caller holds the observer's mu.
func (g *gauges) collectTasks(set setter) {
	o := g.o
	tasks := map[int]int{}
	for t := range o.life.active {
		tasks[t.Subtopology]++
	}
	for sub, n := range tasks {
		set(g.tasks, float64(n), strconv.Itoa(sub), "active")
	}
	bytes, keys, remaining, windows := sums{}, sums{}, sums{}, sums{}
	valueLog := int64(0)
	for k, s := range o.stores {
		bytes.add(k.store, 0, float64(s.Bytes), false)
		keys.add(k.store, 0, float64(s.Keys), false)
		valueLog += s.ValueLogBytes
	}
	for k, r := range o.restores {
		remaining.add(k.store, k.task.Partition, float64(r.remaining()), g.perPartition)
	}
	for _, steps := range o.windows {
		for _, w := range steps {
			windows.add(w.Step, 0, float64(w.N), false)
		}
	}
	windows.emit(set, g.windows)
	set(g.valueLog, float64(valueLog))
	bytes.emit(set, g.stateBytes)
	keys.emit(set, g.stateKeys)
	remaining.emit(set, g.restoreRemaining)
}

// collectInputs emits what belongs to input partitions. The caller holds the observer's mu.
func (g *gauges) collectInputs(set setter) {
	lag, idle := sums{}, sums{}
	waiting := map[string]float64{} // seconds, by topic
	now := g.o.opt.Clock().UnixMilli()
	slowest := map[[2]string]int64{}
	for _, w := range g.o.marks {
		lag.add(w.Topic, w.Partition, float64(max(0, w.Lag)), g.perPartition)
		age := 0.0
		if w.Oldest > 0 { // not record.NoTime, and not the zero value of a caller that does not know
			age = max(0, float64(now-w.Oldest)/1000)
		}
		waiting[w.Topic] = max(waiting[w.Topic], age)
		n := 0.0
		if w.Idle {
			n = 1
		}
		idle.add(w.Source, 0, n, false)
		if w.Watermark == record.NoTime {
			continue
		}
		k := [2]string{w.Source}
		if g.perPartition {
			k[1] = strconv.Itoa(int(w.Partition))
		} else if w.Idle {
			continue // it does not count for the source as a whole
		}
		if old, ok := slowest[k]; !ok || w.Watermark < old {
			slowest[k] = w.Watermark
		}
	}
	marks := sums{}
	for k, ms := range slowest {
		marks[k] = float64(ms) / 1000
	}
	lag.emit(set, g.lag)
	for topic, age := range waiting {
		set(g.lagSeconds, age, topic)
	}
	idle.emit(set, g.idle)
	marks.emit(set, g.watermark)
}
