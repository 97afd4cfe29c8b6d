package store

import (
	"fmt"
	"slices"
	"time"

	"millrace/record"
	"pgregory.net/rapid"
)

// The steps of the machine that concern epochs, the cache and the engine.

func (k *machine) segments(t *rapid.T) {
	for store := range modelStores {
		listed := k.s.Store(store).Segments()
		if !slices.IsSorted(listed) {
			t.Fatalf("segments are not ascending: %v", listed)
		}
		for p := range k.m.committed {
			if _, ok := k.m.get(p); ok && p.store == store && !slices.Contains(listed, p.segment) {
				t.Fatalf("%v has a row, Segments lists only %v", p, listed)
			}
		}
	}
}

func (k *machine) changed(t *rapid.T) {
	store := rapid.IntRange(0, modelStores-1).Draw(t, "store")
	err := k.s.Store(store).Changed(func(segment int64, key, value []byte) error {
		p := place{store, segment, string(key)}
		c := k.m.open[p]
		if !k.m.emit[p] || c.ended != (value == nil) || c.value != string(value) || c.ended && c.born {
			t.Fatalf("%v=%q was visited, want %+v emit %v", p, value, c, k.m.emit[p])
		}
		delete(k.m.emit, p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for p := range k.m.emit {
		if p.store != store {
			continue
		}
		if c := k.m.open[p]; !c.ended || !c.born {
			t.Fatalf("%v was not visited", p)
		}
		delete(k.m.emit, p)
	}
}

func (k *machine) freeze(*rapid.T) {
	if k.frozen {
		return
	}
	k.s.Freeze()
	k.m.frozen, k.m.open, k.m.emit = k.m.open, map[place]cell{}, map[place]bool{}
	k.frozen = true
}

func (k *machine) commit(t *rapid.T) {
	if !k.frozen {
		return
	}
	ends := make([]record.Offset, modelStores)
	for store := range modelStores {
		net := k.m.net(store)
		k.s.Store(store).Changes(func(segment int64, key, value []byte) {
			p := place{store, segment, string(key)}
			c, ok := net[p]
			if !ok || c.ended != (value == nil) || c.value != string(value) {
				t.Fatalf("change %v=%q, want %+v %v", p, value, c, ok)
			}
			delete(net, p)
			k.m.changelogs[store] = append(k.m.changelogs[store], change{segment, string(key), slices.Clone(value)})
		})
		if len(net) > 0 {
			t.Fatalf("changes were left out: %v", net)
		}
		k.m.changelogs[store] = append(k.m.changelogs[store], change{key: "progress"})
		ends[store] = int64(len(k.m.changelogs[store]))
	}
	k.m.commit()
	k.notes++
	k.s.SetNote([]byte(fmt.Sprint("note ", k.notes)))
	k.s.Commit(ends, k.now)
	k.frozen = false
}

func (k *machine) abort(*rapid.T) {
	k.s.Abort()
	k.m.abort()
	k.frozen = false
	clear(k.ended)
}

func (k *machine) flush(*rapid.T) {
	k.now = k.now.Add(2 * time.Second)
	if k.s.FlushDue(k.now) {
		k.inFlush = string(k.s.Note())
		k.s.StartFlush(k.now)
	}
}

func (k *machine) flushed(t *rapid.T) {
	wait := rapid.Bool().Draw(t, "wait")
	flushing := k.s.Flushing()
	_, done, err := k.s.Flushed(wait)
	if err != nil {
		t.Fatal(err)
	}
	if done != (flushing && !k.s.Flushing()) || wait && k.s.Flushing() {
		t.Fatalf("done is %v, flushing went from %v to %v", done, flushing, k.s.Flushing())
	}
}

// trim also shows that rows which were only read do not stay for ever.
func (k *machine) trim(t *rapid.T) {
	before := k.s.CacheBytes()
	k.s.Trim()
	if k.s.CacheBytes() > before {
		t.Fatalf("the cache grew from %d to %d", before, k.s.CacheBytes())
	}
	if k.s.Flushing() || !k.s.dirtySince.IsZero() {
		return
	}
	k.s.Trim()
	k.s.Trim()
	if k.s.CacheBytes() > k.s.options.CacheBytes {
		t.Fatalf("nothing is dirty, and %d bytes stay of %d", k.s.CacheBytes(), k.s.options.CacheBytes)
	}
}

func (k *machine) cacheSize(t *rapid.T) {
	k.s.SetCacheBytes(rapid.IntRange(0, 60_000).Draw(t, "bytes"))
}

// bounds holds after every step.
func (k *machine) bounds(t *rapid.T) {
	if k.s.Full() && (k.s.CacheBytes() <= 2*k.s.options.CacheBytes || !k.s.Flushing() && !k.s.FlushDue(k.now)) {
		t.Fatalf("full with %d bytes of %d, flushing %v: no flush would end it", k.s.CacheBytes(), k.s.options.CacheBytes, k.s.Flushing())
	}
}

// restart closes the State with or without a flush before: the changelogs repair the rest.
func (k *machine) restart(t *rapid.T) {
	if rapid.Bool().Draw(t, "clean") {
		k.inFlush = string(k.s.Note())
		if _, err := k.s.Flush(k.now); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.s.Close(); err != nil {
		t.Fatal(err)
	}
	k.s = k.open()
	k.m.abort()
	k.frozen = false
	clear(k.ended)
	if string(k.s.Note()) != k.inFlush {
		t.Fatalf("the note is %q, the last flush had %q", k.s.Note(), k.inFlush)
	}
	for store := range modelStores {
		if k.s.Reused(store) != k.s.Position(store) {
			t.Fatalf("reused %d, position %d", k.s.Reused(store), k.s.Position(store))
		}
		for _, c := range k.m.changelogs[store][k.s.Position(store):] {
			if c.key != "progress" {
				k.s.Apply(store, c.segment, []byte(c.key), c.value)
			}
		}
		k.s.SetPosition(store, int64(len(k.m.changelogs[store])), k.now)
	}
	if k.notes > 0 {
		k.s.SetNote([]byte(fmt.Sprint("note ", k.notes)))
	}
	for segment := range int64(6) {
		for store := range modelStores {
			for i := range modelKeys + 1 {
				k.check(t, place{store, segment - 2, fmt.Sprint("key-", i)})
			}
		}
	}
}
