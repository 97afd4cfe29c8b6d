package store

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"millrace/record"
	"pgregory.net/rapid"
)

func TestKeysAreSortedAndSingle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Few different bytes, so that keys share their first eight, are prefixes of each other, and repeat.
		drawn := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 255}), 0, 12), 0, 60).Draw(t, "keys")
		var k Keys
		for _, key := range drawn {
			k.add(key)
		}
		k.sort()
		want := slices.Clone(drawn)
		slices.SortFunc(want, bytes.Compare)
		want = slices.CompactFunc(want, bytes.Equal)
		if k.Len() != len(want) {
			t.Fatalf("%d keys, want %d", k.Len(), len(want))
		}
		for i := range want {
			if !bytes.Equal(k.At(i), want[i]) {
				t.Fatalf("key %d is %x, want %x", i, k.At(i), want[i])
			}
		}
	})
}

// Segments sort by time in the engine, negative ones first, and before the checkpoint's row.
func TestEngineKeysSortBySegment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		store := rapid.IntRange(0, 0xfffe).Draw(t, "store")
		x, y := appendSegment(nil, store, a), appendSegment(nil, store, b)
		if bytes.Compare(x, y) != compareInt64(a, b) {
			t.Fatalf("%d and %d sort as %x and %x", a, b, x, y)
		}
		if s, segment, ok := parseSegment(append(x, "key"...)); !ok || s != store || segment != a {
			t.Fatalf("%d/%d came back as %d/%d %v", store, a, s, segment, ok)
		}
		if bytes.Compare(append(x, 0xff, 0xff, 0xff), checkpointKey) >= 0 {
			t.Fatalf("%x sorts behind the checkpoint", x)
		}
	})
	if _, _, ok := parseSegment(make([]byte, segmentBytes-1)); ok {
		t.Error("a short key has a segment")
	}
}

func drawCheckpoint(t *rapid.T) Checkpoint {
	return Checkpoint{
		Positions: rapid.SliceOfN(rapid.Int64Min(0), 0, 5).Draw(t, "positions"),
		Written:   time.UnixMilli(rapid.Int64Range(0, 1<<45).Draw(t, "written")),
		Note:      rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "note"),
	}
}

func TestCheckpointsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCheckpoint(t)
		got, err := decodeCheckpoint(c.encode())
		if err != nil || !slices.Equal(got.Positions, c.Positions) || !got.Written.Equal(c.Written) || !bytes.Equal(got.Note, c.Note) {
			t.Fatalf("%+v came back as %+v, %v", c, got, err)
		}
	})
}

func TestDamagedCheckpointsAreRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawCheckpoint(t).encode()
		damaged := slices.Clone(b)
		if rapid.Bool().Draw(t, "flip") {
			damaged[rapid.IntRange(0, len(b)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		} else {
			damaged = damaged[:rapid.IntRange(0, len(b)-1).Draw(t, "length")]
		}
		if c, err := decodeCheckpoint(damaged); !errors.Is(err, errCheckpoint) {
			t.Fatalf("%x of %x was read as %+v, %v", damaged, b, c, err)
		}
	})
}

func TestCheckpointsOfAnotherVersionAreRefused(t *testing.T) {
	b := (&Checkpoint{Positions: []record.Offset{3}}).encode()
	b[0]++
	b = checksummed(b[:len(b)-4])
	if _, err := decodeCheckpoint(b); err == nil || errors.Is(err, errCheckpoint) {
		t.Errorf("version 2: %v", err)
	}
	short := checksummed([]byte{checkpointVersion, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 2, 3})
	if _, err := decodeCheckpoint(short); !errors.Is(err, errCheckpoint) {
		t.Errorf("two positions in three bytes: %v", err)
	}
}
