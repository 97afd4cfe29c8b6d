package store

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"millrace/record"
)

// Opening a store costs what it has of segments, whatever it has of rows.
func BenchmarkOpen(b *testing.B) {
	for _, rows := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			dir := b.TempDir()
			e, err := openBadger(dir, DefaultMemTable, func(string) {})
			if err != nil {
				b.Fatal(err)
			}
			var all []Row
			for i := range rows {
				all = append(all, Row{append(appendSegment(nil, 0, int64(i%16)), fmt.Sprintf("key-%09d", i)...), []byte("value-value-value-value")})
			}
			slices.SortFunc(all, func(a, b Row) int { return bytes.Compare(a.Key, b.Key) })
			if err := e.Flush(all, nil, Checkpoint{Positions: []record.Offset{1}}); err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			for b.Loop() {
				if _, err := Open(e, Options{Stores: []string{"s"}, CacheBytes: 1 << 20, FlushInterval: time.Hour}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
