package store

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A place is one row's name in the model.
type place struct {
	store   int
	segment int64
	key     string
}

// A cell is what an epoch has written to a row.
type cell struct {
	value string
	ended bool
	born  bool // did not exist before the epoch
}

type change struct {
	segment int64
	key     string
	value   []byte
}

// model is a State in the plainest form: what is committed, what is frozen, what this epoch wrote, and the changelogs. A
// crash keeps the engine and replays the changelogs from its checkpoint, as the product does.
type model struct {
	committed    map[place]string
	frozen, open map[place]cell
	emit         map[place]bool // saved with emit in this epoch and not visited
	changelogs   [modelStores][]change
}

const modelStores = 2

func newModel() *model {
	return &model{committed: map[place]string{}, frozen: map[place]cell{}, open: map[place]cell{}, emit: map[place]bool{}}
}

func (m *model) get(p place) (string, bool) {
	for _, layer := range []map[place]cell{m.open, m.frozen} {
		if c, ok := layer[p]; ok {
			return c.value, !c.ended
		}
	}
	v, ok := m.committed[p]
	return v, ok
}

func (m *model) put(p place, c cell) {
	if former, ok := m.open[p]; ok {
		c.born = former.born
	} else {
		_, existed := m.get(p)
		c.born = !existed
	}
	m.open[p] = c
}

// net is what the frozen epoch changes: nobody has seen a row that began and ended within it.
func (m *model) net(store int) map[place]cell {
	net := map[place]cell{}
	for p, c := range m.frozen {
		if p.store == store && (!c.ended || !c.born) {
			net[p] = c
		}
	}
	return net
}

func (m *model) commit() {
	for p, c := range m.frozen {
		if c.ended {
			delete(m.committed, p)
		} else {
			m.committed[p] = c.value
		}
	}
	m.frozen = map[place]cell{}
}

func (m *model) abort() {
	m.frozen, m.open, m.emit = map[place]cell{}, map[place]cell{}, map[place]bool{}
}

// machine is a State beside its model. Its methods are the steps that rapid puts in any order.
type machine struct {
	t      *rapid.T
	s      *State
	m      *model
	open   func() *State
	now    time.Time
	frozen bool
	ended  map[place]bool // segments that get no further rows: as windows do, they stay ended

	notes   int    // the number of the last note
	inFlush string // the note of the flush that was begun last
}

func TestStateAgreesWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := &machine{t: t, m: newModel(), now: time.Unix(1000, 0), ended: map[place]bool{}}
		k.open = k.opener()
		k.s = k.open()
		t.Repeat(map[string]func(*rapid.T){
			"": k.bounds, "write": k.write, "delete": k.delete, "end segment": k.endSegment, "read": k.read, "keys": k.keys, "segments": k.segments,
			"changed": k.changed, "freeze": k.freeze, "commit": k.commit, "abort": k.abort, "flush": k.flush, "flushed": k.flushed, "trim": k.trim,
			"cache size": k.cacheSize, "restart": k.restart,
		})
		if err := k.s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func (k *machine) opener() func() *State {
	memory, dir := NewMemory(), ""
	if rapid.Bool().Draw(k.t, "disk") {
		dir = filepath.Join(tempDir(k.t), "0_0")
	}
	names := []string{"counts", "sums"}
	return func() *State {
		var e Engine = memory
		if dir != "" {
			var err error
			if e, _, err = OpenDir(dir, Identity{"app", "0_0", names}, func(s string) { k.t.Log(s) }); err != nil {
				k.t.Fatal(err)
			}
		}
		s, err := Open(e, Options{Stores: names, CacheBytes: 20_000, FlushInterval: time.Second})
		if err != nil {
			k.t.Fatal(err)
		}
		return s
	}
}

func tempDir(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

const modelKeys = 300

func (k *machine) draw(t *rapid.T) place {
	return place{rapid.IntRange(0, modelStores-1).Draw(t, "store"), rapid.Int64Range(-2, 3).Draw(t, "segment"), fmt.Sprintf("key-%d", rapid.IntRange(0, modelKeys).Draw(t, "key"))}
}

func (k *machine) segment(t *rapid.T) place {
	p := k.draw(t)
	p.key = ""
	return p
}

// check loads a row and compares it.
func (k *machine) check(t *rapid.T, p place) {
	got, ok, err := k.s.Store(p.store).Load(p.segment, []byte(p.key))
	if err != nil {
		t.Fatal(err)
	}
	want, wantOK := k.m.get(p)
	if ok != wantOK || ok && (got == nil || string(got) != want) {
		t.Fatalf("%v: got %q %v, want %q %v", p, got, ok, want, wantOK)
	}
}

func (k *machine) write(t *rapid.T) {
	for range rapid.IntRange(1, 200).Draw(t, "n") {
		p := k.draw(t)
		if k.ended[place{p.store, p.segment, ""}] {
			continue
		}
		k.check(t, p)
		v, emit := rapid.StringN(0, 40, 60).Draw(t, "value"), rapid.Bool().Draw(t, "emit")
		k.s.Store(p.store).Save(p.segment, []byte(p.key), []byte(v), emit)
		k.m.put(p, cell{value: v})
		if emit {
			k.m.emit[p] = true
		}
		if k.s.Store(p.store).Pending() != k.m.emit[p] {
			t.Fatalf("%v: pending is %v, want %v", p, !k.m.emit[p], k.m.emit[p])
		}
	}
}

func (k *machine) delete(t *rapid.T) {
	p := k.draw(t)
	k.check(t, p)
	k.s.Store(p.store).Delete(p.segment, []byte(p.key))
	k.m.put(p, cell{ended: true})
}

func (k *machine) endSegment(t *rapid.T) {
	p := k.segment(t)
	st := k.s.Store(p.store)
	found, err := st.Keys(p.segment)
	if err != nil {
		t.Fatal(err)
	}
	for i := range found.Len() {
		row := place{p.store, p.segment, string(found.At(i))}
		k.check(t, row)
		if _, ok := k.m.get(row); ok {
			st.Delete(p.segment, found.At(i))
			k.m.put(row, cell{ended: true})
		}
	}
	st.DropSegment(p.segment)
	k.ended[p] = rapid.Bool().Draw(t, "for good")
}

func (k *machine) read(t *rapid.T) { k.check(t, k.draw(t)) }

func (k *machine) keys(t *rapid.T) {
	a, b := k.segment(t), k.segment(t)
	st := k.s.Store(a.store)
	found, err := st.Keys(a.segment, b.segment)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for i := range found.Len() {
		if i > 0 && string(found.At(i-1)) >= string(found.At(i)) {
			t.Fatalf("key %q comes before %q", found.At(i-1), found.At(i))
		}
		all[string(found.At(i))] = true
	}
	for p := range maps.Keys(k.m.committed) {
		k.mustList(t, all, p, a.store, a.segment, b.segment)
	}
	for p := range maps.Keys(k.m.open) {
		k.mustList(t, all, p, a.store, a.segment, b.segment)
	}
}

func (k *machine) mustList(t *rapid.T, all map[string]bool, p place, store int, segments ...int64) {
	if _, ok := k.m.get(p); ok && p.store == store && slices.Contains(segments, p.segment) && !all[p.key] {
		t.Fatalf("%v has a row, Keys does not list it", p)
	}
}
