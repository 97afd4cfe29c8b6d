package store

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"millrace/record"
	"pgregory.net/rapid"
)

// A model of a State: what is committed, what is frozen, what this epoch wrote. The changelog is a list of changes; a
// crash keeps the engine and replays the changelog from the checkpoint, as the product does.
type model struct {
	committed, frozen, open map[string]string // "segment/key" to value; "" in frozen and open: deleted
	changelog               []change
	frozenChanges           []change
}

type change struct {
	segment int64
	key     string
	value   []byte
}

func name(segment int64, key string) string { return fmt.Sprintf("%d/%s", segment, key) }

func (m *model) get(n string) (string, bool) {
	for _, layer := range []map[string]string{m.open, m.frozen} {
		if v, ok := layer[n]; ok {
			return v, v != ""
		}
	}
	v, ok := m.committed[n]
	return v, ok
}

func (m *model) freeze() { m.frozen, m.open = m.open, map[string]string{} }

func (m *model) commit() {
	for n, v := range m.frozen {
		if v == "" {
			delete(m.committed, n)
		} else {
			m.committed[n] = v
		}
	}
	m.changelog = append(m.changelog, m.frozenChanges...)
	m.frozen, m.frozenChanges = map[string]string{}, nil
}

func TestStateAgreesWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		onDisk := rapid.Bool().Draw(t, "disk")
		dir := ""
		memory := NewMemory()
		if onDisk {
			dir = filepath.Join(tempDir(t), "0_0")
		}
		open := func() *State {
			var e Engine = memory
			if onDisk {
				var err error
				e, _, err = OpenDir(dir, Identity{"app", "0_0", []string{"counts"}}, func(s string) { t.Log(s) })
				if err != nil {
					t.Fatal(err)
				}
			}
			s, err := Open(e, Options{Stores: []string{"counts"}, CacheBytes: 20_000, FlushInterval: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := open()
		m := &model{committed: map[string]string{}, frozen: map[string]string{}, open: map[string]string{}}
		now := time.Unix(1000, 0)
		frozen := false
		check := func(segment int64, key string) {
			got, ok, err := s.Store(0).Load(segment, []byte(key))
			if err != nil {
				t.Fatal(err)
			}
			want, wantOK := m.get(name(segment, key))
			if ok != wantOK || string(got) != want {
				t.Fatalf("%d/%s: got %q %v, want %q %v", segment, key, got, ok, want, wantOK)
			}
		}
		segments := rapid.Int64Range(-2, 3)
		keys := rapid.Map(rapid.IntRange(0, 300), func(i int) string { return fmt.Sprintf("key-%d", i) })
		dead := map[int64]bool{} // segments that ended: nothing may be written to them
		commit := func() {
			s.Store(0).Changes(func(segment int64, key, value []byte) {
				m.frozenChanges = append(m.frozenChanges, change{segment, string(key), slices.Clone(value)})
			})
			m.commit()
			s.Commit([]record.Offset{int64(len(m.changelog))}, now)
			frozen = false
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				for range rapid.IntRange(1, 200).Draw(t, "n") {
					segment, key := segments.Draw(t, "segment"), keys.Draw(t, "key")
					if dead[segment] {
						continue
					}
					check(segment, key)
					v := rapid.StringN(1, 40, 60).Draw(t, "value")
					s.Store(0).Save(segment, []byte(key), []byte(v), false)
					m.open[name(segment, key)] = v
				}
			},
			"delete": func(t *rapid.T) {
				segment, key := segments.Draw(t, "segment"), keys.Draw(t, "key")
				check(segment, key)
				s.Store(0).Delete(segment, []byte(key))
				m.open[name(segment, key)] = ""
			},
			"end segment": func(t *rapid.T) {
				segment := segments.Draw(t, "segment")
				k, err := s.Store(0).Keys(segment)
				if err != nil {
					t.Fatal(err)
				}
				for i := range k.Len() {
					if _, ok, err := s.Store(0).Load(segment, k.At(i)); err != nil {
						t.Fatal(err)
					} else if ok {
						s.Store(0).Delete(segment, k.At(i))
						m.open[name(segment, string(k.At(i)))] = ""
					}
				}
				s.Store(0).DropSegment(segment)
				dead[segment] = rapid.Bool().Draw(t, "for good")
			},
			"read": func(t *rapid.T) { check(segments.Draw(t, "segment"), keys.Draw(t, "key")) },
			"keys": func(t *rapid.T) {
				segment := segments.Draw(t, "segment")
				k, err := s.Store(0).Keys(segment)
				if err != nil {
					t.Fatal(err)
				}
				var got, want []string
				for i := range k.Len() {
					if _, ok, _ := s.Store(0).Load(segment, k.At(i)); ok {
						got = append(got, string(k.At(i)))
					}
				}
				for i := range 301 {
					key := fmt.Sprintf("key-%d", i)
					if _, ok := m.get(name(segment, key)); ok {
						want = append(want, key)
					}
				}
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Fatalf("segment %d: keys %v, want %v", segment, got, want)
				}
			},
			"freeze": func(t *rapid.T) {
				if !frozen {
					s.Freeze()
					m.freeze()
					frozen = true
				}
			},
			"commit": func(t *rapid.T) {
				if frozen {
					commit()
				}
			},
			"abort": func(t *rapid.T) {
				s.Abort()
				m.open, m.frozen, frozen = map[string]string{}, map[string]string{}, false
				clear(dead)
			},
			"flush": func(t *rapid.T) {
				now = now.Add(2 * time.Second)
				if s.FlushDue(now) {
					s.StartFlush(now)
				}
			},
			"flushed": func(t *rapid.T) {
				if _, _, err := s.Flushed(true); err != nil {
					t.Fatal(err)
				}
			},
			"restart": func(t *rapid.T) { // with or without a flush before: the changelog repairs the rest
				if rapid.Bool().Draw(t, "clean") {
					if _, err := s.Flush(now); err != nil {
						t.Fatal(err)
					}
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = open()
				m.open, m.frozen, frozen = map[string]string{}, map[string]string{}, false
				clear(dead)
				for _, c := range m.changelog[s.Position(0):] {
					s.Apply(0, c.segment, []byte(c.key), c.value)
				}
				s.SetPosition(0, int64(len(m.changelog)), now)
				for _, n := range slices.Sorted(maps.Keys(m.committed)) {
					var segment int64
					var key string
					fmt.Sscanf(n, "%d/%s", &segment, &key)
					check(segment, key)
				}
			},
		})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func tempDir(t *rapid.T) string {
	dir, err := makeTemp()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeTemp(dir) })
	return dir
}
