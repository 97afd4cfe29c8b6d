package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/record"
)

func checksummed(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// kind is a sort of Engine; open returns it with what it held before.
type kind struct {
	name string
	open func(t *testing.T) Engine
}

func kinds(t *testing.T) []kind {
	memory, dir := NewMemory(), filepath.Join(t.TempDir(), "0_0")
	return []kind{
		{"memory", func(*testing.T) Engine { return memory }},
		{"directory", func(t *testing.T) Engine {
			t.Helper()
			e, _, err := OpenDir(dir, testIdentity, func(s string) { t.Log(s) })
			if err != nil {
				t.Fatal(err)
			}
			return e
		}},
	}
}

var testIdentity = Identity{"app", "0_0", []string{"s"}}

// onEach runs a story on each kind of engine. reopen closes it and opens it again.
func onEach(t *testing.T, story func(t *testing.T, e Engine, reopen func() Engine)) {
	for _, k := range kinds(t) {
		t.Run(k.name, func(t *testing.T) {
			e := k.open(t)
			shut := func() {
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
			story(t, e, func() Engine {
				shut()
				e = k.open(t)
				return e
			})
			shut()
		})
	}
}

func engineKey(segment int64, key string) []byte {
	return append(appendSegment(nil, 0, segment), key...)
}

func row(segment int64, key, value string) Row {
	return Row{engineKey(segment, key), []byte(value)}
}

func mustFlush(t *testing.T, e Engine, rows []Row, drop ...int64) {
	t.Helper()
	var prefixes [][]byte
	for _, segment := range drop {
		prefixes = append(prefixes, appendSegment(nil, 0, segment))
	}
	if err := e.Flush(rows, prefixes, Checkpoint{Positions: []record.Offset{int64(len(rows))}, Written: time.UnixMilli(5), Note: []byte("note")}); err != nil {
		t.Fatal(err)
	}
}

// dump is all that an engine holds of store 0, in its order.
func dump(t *testing.T, e Engine) string {
	t.Helper()
	var b strings.Builder
	err := e.Range([]byte{0, 0}, func(key, value []byte) bool {
		_, segment, _ := parseSegment(key)
		fmt.Fprintf(&b, "%d/%s=%s ", segment, key[segmentBytes:], value)
		got, found, err := e.Get(key)
		if err != nil || !found || !bytes.Equal(got, value) {
			t.Errorf("%q: Range has %q, Get %q %v %v", key, value, got, found, err)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

func TestEnginesKeepWhatWasFlushed(t *testing.T) {
	onEach(t, func(t *testing.T, e Engine, reopen func() Engine) {
		if _, ok, err := e.Checkpoint(); ok || err != nil {
			t.Fatalf("a new engine has a checkpoint: %v %v", ok, err)
		}
		if got := dump(t, e); got != "" {
			t.Fatalf("a new engine holds %s", got)
		}
		mustFlush(t, e, []Row{row(-5, "b", "1"), row(3, "a", ""), row(3, "c", "2")})
		for range 2 {
			if got := dump(t, e); got != "-5/b=1 3/a= 3/c=2" {
				t.Fatalf("holds %s", got)
			}
			c, ok, err := e.Checkpoint()
			if err != nil || !ok || c.Positions[0] != 3 || string(c.Note) != "note" || c.Written.UnixMilli() != 5 {
				t.Fatalf("checkpoint %+v %v %v", c, ok, err)
			}
			e = reopen()
		}
	})
}

// A deletion must hide the row for good. That KVLoader passes Badger's mark of it on is nowhere promised.
func TestEnginesDelete(t *testing.T) {
	onEach(t, func(t *testing.T, e Engine, reopen func() Engine) {
		mustFlush(t, e, []Row{row(1, "a", "1"), row(1, "b", "1"), row(1, "c", "1")})
		mustFlush(t, e, []Row{{Key: engineKey(1, "b")}, row(1, "c", "2")})
		for range 2 {
			if got := dump(t, e); got != "1/a=1 1/c=2" {
				t.Fatalf("holds %s", got)
			}
			if _, found, err := e.Get(engineKey(1, "b")); found || err != nil {
				t.Fatalf("a deleted row: %v %v", found, err)
			}
			e = reopen()
		}
		mustFlush(t, e, []Row{row(1, "b", "3")})
		if got := dump(t, e); got != "1/a=1 1/b=3 1/c=2" {
			t.Errorf("holds %s", got)
		}
	})
}

func TestEnginesDropSegments(t *testing.T) {
	onEach(t, func(t *testing.T, e Engine, reopen func() Engine) {
		mustFlush(t, e, []Row{row(-1, "a", "1"), row(7, "a", "1"), row(7, "b", "1"), row(8, "a", "1")})
		mustFlush(t, e, []Row{row(7, "c", "2")}, 7, -1) // dropped before the rows are written
		for range 2 {
			if got := dump(t, e); got != "7/c=2 8/a=1" {
				t.Fatalf("holds %s", got)
			}
			e = reopen()
		}
		mustFlush(t, e, nil, 7)
		e = reopen()
		if got := dump(t, e); got != "8/a=1" {
			t.Errorf("holds %s", got)
		}
	})
}

func TestEnginesRangeUntilToldToStop(t *testing.T) {
	onEach(t, func(t *testing.T, e Engine, _ func() Engine) {
		mustFlush(t, e, []Row{row(1, "a", "1"), row(1, "b", "1"), row(2, "a", "1")})
		var seen []string
		err := e.Range(appendSegment(nil, 0, 1), func(key, _ []byte) bool {
			seen = append(seen, string(key[segmentBytes:]))
			return len(seen) < 1
		})
		if err != nil || len(seen) != 1 || seen[0] != "a" {
			t.Errorf("visited %v, %v", seen, err)
		}
	})
}

func TestEnginesSkipFromHeadToHead(t *testing.T) {
	onEach(t, func(t *testing.T, e Engine, reopen func() Engine) {
		mustFlush(t, e, []Row{row(math.MinInt64, "a", "1"), row(-1, "a", "1"), row(-1, "b", "1"), row(0, "", "1"), row(7, "x", "1"),
			row(7, strings.Repeat("k", 1<<16), "1"), row(math.MaxInt64, "a", "1"), {[]byte{0, 1, 5}, []byte("too short for a head")}})
		mustFlush(t, e, []Row{{Key: engineKey(0, "")}}) // deletes the only row of a segment
		for range 2 {
			var seen []int64
			if err := e.Heads([]byte{0, 0}, segmentBytes, func(head []byte) {
				_, segment, ok := parseSegment(head)
				if !ok || len(head) != segmentBytes {
					t.Errorf("head %x", head)
				}
				seen = append(seen, segment)
			}); err != nil {
				t.Fatal(err)
			}
			if want := []int64{math.MinInt64, -1, 7, math.MaxInt64}; !slices.Equal(seen, want) {
				t.Errorf("segments %v, want %v", seen, want)
			}
			e = reopen()
		}
	})
}

func TestSuccessor(t *testing.T) {
	for head, want := range map[string]string{"a": "b", "a\xff": "b", "a\xfeb": "a\xfec", "\xff\xff": "", "": ""} {
		if got := successor([]byte(head)); string(got) != want {
			t.Errorf("%q is followed by %q, want %q", head, got, want)
		}
	}
}

// Rows of all sizes come back: values beyond Badger's threshold for its value log, and keys longer than its two bytes of
// length, which it would cut without a word.
func TestEnginesKeepLargeRows(t *testing.T) {
	long := strings.Repeat("k", 1<<16)
	var rows []Row
	want := map[string]string{}
	for _, tail := range []string{"", "a", "b", strings.Repeat("c", 200_000)} {
		want[long+tail] = "value of " + tail
	}
	want[strings.Repeat("k", longKey-segmentBytes-1)] = "the longest that is stored as it is"
	want[strings.Repeat("k", longKey-segmentBytes)] = "the shortest that is not"
	want["large"] = strings.Repeat("v", 3<<20)
	for key, value := range want {
		rows = append(rows, row(1, key, value))
	}
	onEach(t, func(t *testing.T, e Engine, reopen func() Engine) {
		mustFlush(t, e, rows)
		for range 2 {
			n := 0
			err := e.Range(appendSegment(nil, 0, 1), func(key, value []byte) bool {
				n++
				if v := want[string(key[segmentBytes:])]; v == "" || v != string(value) {
					t.Errorf("a key of %d bytes has a value of %d", len(key), len(value))
				}
				return true
			})
			if err != nil || n != len(want) {
				t.Errorf("%d rows of %d, %v", n, len(want), err)
			}
			for key, value := range want {
				if got, found, err := e.Get(engineKey(1, key)); err != nil || !found || string(got) != value {
					t.Errorf("a key of %d bytes: %d bytes, found %v, %v", len(key), len(got), found, err)
				}
			}
			e = reopen()
		}
		mustFlush(t, e, []Row{{Key: engineKey(1, long)}, {Key: engineKey(1, "large")}})
		_, one, _ := e.Get(engineKey(1, long))
		_, two, _ := e.Get(engineKey(1, "large"))
		_, three, _ := e.Get(engineKey(1, long+"a"))
		if one || two || !three {
			t.Errorf("after two deletions: %v %v %v", one, two, three)
		}
	})
}

// Many more rows than a memtable holds, in one flush.
func TestEnginesKeepManyRows(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 20 MB")
	}
	var rows []Row
	for i := range 20_000 {
		rows = append(rows, row(1, fmt.Sprintf("%08d", i), strings.Repeat(fmt.Sprint(i%10), 1000)))
	}
	onEach(t, func(t *testing.T, e Engine, reopen func() Engine) {
		mustFlush(t, e, rows)
		e = reopen()
		n := 0
		err := e.Range(appendSegment(nil, 0, 1), func(key, value []byte) bool {
			if !bytes.Equal(key, rows[n].Key) || !bytes.Equal(value, rows[n].Value) {
				t.Errorf("row %d is %q", n, key)
				return false
			}
			n++
			return true
		})
		if err != nil || n != len(rows) {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}
