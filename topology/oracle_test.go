package topology_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"millrace/record"
)

// windowing is a windowed step's contract, in milliseconds.
type windowing struct {
	size, advance, offset, lateness, disorder int64
	emit                                      string
	fold                                      bool // values joined in order; otherwise a count
}

func drawWindowing(t *rapid.T, emits ...string) windowing {
	c := windowing{size: rapid.Int64Range(1, 24).Draw(t, "size")}
	c.advance = c.size
	if rapid.Bool().Draw(t, "hopping") {
		c.advance = rapid.Int64Range(1, c.size).Draw(t, "advance")
	}
	c.offset = rapid.Int64Range(1-c.advance, c.advance-1).Draw(t, "offset")
	c.lateness = rapid.Int64Range(0, 15).Draw(t, "lateness")
	c.disorder = rapid.Int64Range(0, 8).Draw(t, "disorder")
	c.emit = rapid.SampledFrom(emits).Draw(t, "emit")
	c.fold = rapid.Bool().Draw(t, "fold")
	return c
}

func (c windowing) yaml() string {
	kind := "tumbling"
	if c.advance != c.size {
		kind = fmt.Sprintf("hopping, advance: %dms", c.advance)
	}
	return fmt.Sprintf("{ type: %s, size: %dms, offset: %dms, allowed_lateness: %dms }", kind, c.size, c.offset, c.lateness)
}

func (c windowing) aggregate() string {
	if c.fold {
		return concat
	}
	return "count()"
}

// groupWindow is one key's window.
type groupWindow struct {
	end int64
	key string
}

func compareWindows(a, b groupWindow) int {
	return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.key, b.key))
}

type total struct {
	values   []string
	newest   int64
	revision int
}

// oracle does what a windowed step should do, one record after the other, with all of it in memory and nothing clever: it
// knows no epochs, stores, slices or restarts.
type oracle struct {
	c         windowing
	newest    int64
	watermark int64
	totals    map[groupWindow]*total
	late      []string // as showLate has them
	refusals  int64
	entered   int64 // windows of all records that had a key and a value
	dropped   map[string]int64
}

func newOracle(c windowing) *oracle {
	return &oracle{c: c, newest: -1 << 40, watermark: -1 << 40, totals: map[groupWindow]*total{}, dropped: map[string]int64{}}
}

func (o *oracle) add(r record.Record) {
	o.newest = max(o.newest, r.Timestamp)
	o.pass(max(o.watermark, o.newest-o.c.disorder))
	switch {
	case r.Value == nil:
		o.dropped["null_value"]++
		return
	case r.Key == nil:
		o.dropped["null_key"]++
		return
	}
	var refused []string
	by := int64(0)
	for end := r.Timestamp + 1; end <= r.Timestamp+o.c.size; end++ {
		if (end-o.c.size-o.c.offset)%o.c.advance != 0 {
			continue
		}
		o.entered++
		if closes := end + o.c.lateness; o.watermark >= closes {
			if refused == nil {
				by = o.watermark - closes
			}
			refused = append(refused, fmt.Sprint(end))
			continue
		}
		o.update(groupWindow{end, string(r.Key)}, r)
	}
	if refused != nil {
		o.refusals += int64(len(refused))
		o.late = append(o.late, fmt.Sprintf("late %s %s %d late-by-ms=%d window-end=%s", r.Key, r.Value, r.Timestamp, by, strings.Join(refused, ",")))
	}
}

func (o *oracle) update(w groupWindow, r record.Record) {
	sum := o.totals[w]
	if sum == nil {
		sum = &total{}
		o.totals[w] = sum
	}
	sum.values = append(sum.values, string(r.Value))
	sum.newest = max(sum.newest, r.Timestamp)
	if w.end <= o.watermark {
		sum.revision++
	}
}

// pass moves time, which brings the first results of windows with corrections.
func (o *oracle) pass(watermark int64) {
	o.watermark = watermark
	for w, sum := range o.totals {
		if w.end <= watermark && sum.revision == 0 {
			sum.revision = 1
		}
	}
}

// results returns the last result of every window that must have one, in the order of finals, without its revision.
func (o *oracle) results() (rows []string) {
	for _, w := range slices.SortedFunc(maps.Keys(o.totals), compareWindows) {
		over := o.watermark >= w.end+o.c.lateness
		if o.c.emit == "changes" || o.c.emit == "final" && over || o.c.emit == "final_with_corrections" && o.totals[w].revision > 0 {
			rows = append(rows, o.row(w))
		}
	}
	return rows
}

func (o *oracle) row(w groupWindow) string {
	sum := o.totals[w]
	result := fmt.Sprint(len(sum.values))
	if o.c.fold {
		result = strings.Join(sum.values, "+")
	}
	return fmt.Sprintf("%s[%d,%d)=%s @%d", w.key, w.end-o.c.size, w.end, result, sum.newest)
}
