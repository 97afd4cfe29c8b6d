package observe

import (
	"math"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"millrace/record"
)

// spreadVec is a histogram that is counted elsewhere, in powers of two and in bulk: what happens with every record is not
// observed one by one.
type spreadVec struct {
	desc        *prometheus.Desc
	labels      int     // their number, at most two
	unit        float64 // seconds in one of the spread's units
	first, last int     // the buckets that are shown: powers of two, every other one

	mu       sync.Mutex
	byLabels map[[2]string]*record.Spread
}

// spread registers a histogram of durations that are counted in the given unit.
func (c *catalogue) spread(v *spreadVec, name, help string, labels ...string) *spreadVec {
	c.note("histogram", name, help, labels)
	v.desc, v.labels = prometheus.NewDesc(name, help, labels, nil), len(labels)
	v.byLabels = map[[2]string]*record.Spread{}
	c.to.MustRegister(v)
	return v
}

// add counts more values; nil is nothing. There are as many labels as were registered.
func (v *spreadVec) add(s *record.Spread, labels ...string) {
	if s == nil {
		return
	}
	var key [2]string
	for i, l := range labels {
		key[i] = strings.ToValidUTF8(l, "?")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	sum := v.byLabels[key]
	if sum == nil {
		sum = &record.Spread{}
		v.byLabels[key] = sum
	}
	sum.Merge(s)
}

// Describe implements prometheus.Collector.
func (v *spreadVec) Describe(ch chan<- *prometheus.Desc) { ch <- v.desc }

// Collect implements prometheus.Collector.
func (v *spreadVec) Collect(ch chan<- prometheus.Metric) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for key, s := range v.byLabels {
		buckets := map[float64]uint64{}
		below := uint64(0)
		for i, n := range s.Counts {
			below += uint64(n)
			if i >= v.first && i <= v.last && (i-v.first)%2 == 0 {
				buckets[math.Ldexp(v.unit, i)] = below
			}
		}
		ch <- prometheus.MustNewConstHistogram(v.desc, below, s.Sum*v.unit, buckets, key[:v.labels]...)
	}
}
