package store

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func (t *table) keys() (keys []string) {
	t.each(func(e entry) bool {
		keys = append(keys, string(e.key()))
		return true
	})
	return keys
}

func set(t *table, key string, value []byte) entry {
	return t.put(hashKey([]byte(key)), []byte(key), value, 0)
}

func lookup(t *table, key string) ([]byte, bool) {
	e, ok := t.find(hashKey([]byte(key)), []byte(key))
	if !ok {
		return nil, false
	}
	return e.value(), true
}

// A table agrees with a map, whatever the sizes of its rows, over resets and releases.
func TestTableAgreesWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tab table
		defer tab.release()
		want := map[string][]byte{}
		sizes := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 5_000), rapid.SampledFrom([]int{chunkBytes - 40, chunkBytes, 3 * chunkBytes}))
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				for range rapid.IntRange(1, 30).Draw(t, "n") {
					key := fmt.Sprint("k", rapid.IntRange(0, 100).Draw(t, "key"))
					var value []byte
					if rapid.IntRange(0, 9).Draw(t, "absent") > 0 {
						value = bytes.Repeat([]byte(key[1:2]), sizes.Draw(t, "size"))
						value = append([]byte{}, value...)
					}
					set(&tab, key, value)
					want[key] = value
				}
			},
			"reset": func(t *rapid.T) {
				tab.reset(rapid.SampledFrom([]int{0, 1 << 20, 1 << 30}).Draw(t, "keep"))
				clear(want)
			},
			"release": func(*rapid.T) {
				tab.release()
				clear(want)
			},
			"": func(t *rapid.T) {
				for key, v := range want {
					if got, ok := lookup(&tab, key); !ok || (got == nil) != (v == nil) || !bytes.Equal(got, v) {
						t.Fatalf("%s: got %d bytes %v, want %d", key, len(got), ok, len(v))
					}
				}
				if _, ok := lookup(&tab, "never"); ok || tab.live != len(want) {
					t.Fatalf("%d live, want %d; never: %v", tab.live, len(want), ok)
				}
				keys := tab.keys()
				slices.Sort(keys)
				if all := slices.Sorted(maps.Keys(want)); !slices.Equal(keys, all) {
					t.Fatalf("each visits %v, want %v", keys, all)
				}
			},
		})
	})
}

func TestTableKeepsTheOrderOfComing(t *testing.T) {
	var tab table
	var want []string
	for i := range 3000 {
		key := fmt.Sprint("key ", i*7919%3000)
		set(&tab, key, []byte("v"))
		want = append(want, key)
	}
	set(&tab, want[5], []byte("w")) // fits where it is
	if got := tab.keys(); !slices.Equal(got, want) {
		t.Fatal("the order changed with an update in place")
	}
	set(&tab, want[5], bytes.Repeat([]byte("w"), 100)) // moves to the end
	want = append(slices.Delete(want, 5, 6), want[5])
	want[len(want)-1] = "key " + fmt.Sprint(5*7919%3000)
	if got := tab.keys(); !slices.Equal(got, want) {
		t.Fatal("a row that moved is not the last one")
	}
	if tab.live != 3000 || tab.dead == 0 {
		t.Errorf("%d live, %d bytes dead", tab.live, tab.dead)
	}
}

func TestValuesGrowWithinThePadding(t *testing.T) {
	var tab table
	e := set(&tab, "k", []byte("1234"))
	size := tab.size
	if e.valCap() < 5 {
		t.Fatalf("capacity %d: the padding to eight bytes is wasted", e.valCap())
	}
	set(&tab, "k", bytes.Repeat([]byte("x"), e.valCap()))
	if tab.size != size || tab.dead != 0 {
		t.Errorf("size %d, was %d; %d dead", tab.size, size, tab.dead)
	}
}

func TestSmallTablesStaySmall(t *testing.T) {
	var tab table
	set(&tab, "k", []byte("v"))
	if len(tab.chunks) != 1 || cap(tab.chunks[0]) != firstChunk {
		t.Errorf("%d chunks, the first of %d bytes", len(tab.chunks), cap(tab.chunks[0]))
	}
}

// arenaBalance counts chunks that a function took from the arena and did not give back. What waits in the arena is hidden
// meanwhile, so that other tests do not matter.
func arenaBalance(t *testing.T, f func()) int {
	t.Helper()
	chunkArena.mu.Lock()
	hidden := chunkArena.free
	chunkArena.free = nil
	chunkArena.mu.Unlock()
	f()
	chunkArena.mu.Lock()
	defer chunkArena.mu.Unlock()
	given := len(chunkArena.free)
	chunkArena.free = append(chunkArena.free, hidden...)
	return given
}

func arenaChunks(tab *table) (n int) {
	for _, c := range tab.chunks {
		if cap(c) == chunkBytes {
			n++
		}
	}
	return n
}

func TestReleaseGivesEveryChunkBack(t *testing.T) {
	var tab table
	given := arenaBalance(t, func() {
		for i := range 40 {
			set(&tab, fmt.Sprint(i), make([]byte, 60_000))
		}
		if n := arenaChunks(&tab); n < 9 {
			t.Fatalf("%d chunks for 2.4 MB", n)
		}
		taken := arenaChunks(&tab)
		tab.release()
		if len(chunkArena.free) != taken {
			t.Errorf("%d chunks of %d came back", len(chunkArena.free), taken)
		}
		for i := range 40 {
			set(&tab, fmt.Sprint(i), make([]byte, 60_000))
		}
		if len(chunkArena.free) != 0 || arenaChunks(&tab) != taken {
			t.Errorf("the chunks were not used again: %d wait", len(chunkArena.free))
		}
		tab.release()
	})
	if given < 9 {
		t.Errorf("%d chunks at the end", given)
	}
}

// A chunk that is too small for a row must not be lost: it lies outside the Go heap, where no collector looks for it.
func TestALargeRowLosesNoChunk(t *testing.T) {
	var tab table
	given := arenaBalance(t, func() {
		for i := range 10 {
			set(&tab, fmt.Sprint(i), make([]byte, 60_000))
		}
		taken := arenaChunks(&tab)
		for range 5 {
			tab.reset(1 << 30)
			set(&tab, "small", []byte("v"))
			set(&tab, "large", make([]byte, 2*chunkBytes))
			set(&tab, "small too", []byte("v"))
			if n := arenaChunks(&tab); n != taken {
				t.Fatalf("%d chunks are left of %d", n, taken)
			}
		}
		tab.release()
		if len(chunkArena.free) != taken {
			t.Errorf("%d chunks of %d came back", len(chunkArena.free), taken)
		}
	})
	if given == 0 {
		t.Error("nothing came back")
	}
}

func TestArenaHasABound(t *testing.T) {
	var a arena
	var chunks [][]byte
	for range maxFreeChunks + 3 {
		chunks = append(chunks, a.take())
	}
	for _, c := range chunks {
		a.give(c)
	}
	if len(a.free) != maxFreeChunks {
		t.Errorf("%d chunks wait, the bound is %d", len(a.free), maxFreeChunks)
	}
	if c := a.take(); len(c) != 0 || cap(c) != chunkBytes {
		t.Errorf("a chunk of %d bytes with %d used", cap(c), len(c))
	}
	for _, c := range a.free {
		unmapMemory(c)
	}
}

func TestResetKeepsMemoryUpToItsBound(t *testing.T) {
	var tab table
	defer tab.release()
	for i := range 1000 {
		set(&tab, fmt.Sprint(i), make([]byte, 1000))
	}
	held := len(tab.chunks)
	tab.reset(tab.bytes())
	if len(tab.chunks) != held || tab.bytes() == 0 || tab.live != 0 || tab.size != 0 {
		t.Errorf("%d chunks of %d, %d live, size %d", len(tab.chunks), held, tab.live, tab.size)
	}
	set(&tab, "x", make([]byte, 1000))
	tab.reset(tab.bytes() - 1)
	if len(tab.chunks) != 0 || tab.bytes() != 0 {
		t.Errorf("%d chunks stay beyond the bound", len(tab.chunks))
	}
}
