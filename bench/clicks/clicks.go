// Package clicks is the benchmark's input and the result that each job must make of it. Both follow from a few numbers:
// any record can be recomputed alone, and the expected result is found without reading Kafka.
package clicks

import (
	"math/bits"

	"millrace/record"
)

// Begin is the event time of the first record: 2026-01-01T00:00:00Z in milliseconds.
const Begin = int64(1_767_225_600_000)

// Variant is how a click is written as JSON.
type Variant string

// The variants. All carry the same fields.
const (
	Fixed    Variant = "A" // about 115 B, the fields always in one order
	Shuffled Variant = "B" // the order changes from record to record
	Nested   Variant = "C" // about 320 B with escapes, an object that repeats a field's name, and an array
)

// Stream is a sequence of clicks. Equal streams are equal in every byte.
type Stream struct {
	Seed       uint64
	Users      uint64 // distinct keys, drawn uniformly
	Partitions int
	Rate       uint64 // records a second of event time
	Variant    Variant
}

// Click is one record before it is written.
type Click struct {
	User  uint64
	Time  int64 // milliseconds
	Cents uint64
	draw  uint64 // whatever else is random about it
}

// At returns record i. 98.9 % of the records are up to a second behind the newest, 1 % up to 30 s, which every job
// still takes, and 0.1 % 31 to 60 s, which a window with 30 s of grace refuses once it has closed.
func (s Stream) At(i uint64) Click {
	h := mix(s.Seed<<40 ^ i)
	c := Click{User: below(mix(h+1), s.Users), Cents: below(mix(h+2), 10_000), draw: mix(h + 3)}
	c.Time = Begin + int64(i*1000/s.Rate)
	switch behind, share := mix(h+4), below(mix(h+5), 10_000); {
	case share < 9_890:
		c.Time -= int64(below(behind, 1_000))
	case share < 9_990:
		c.Time -= int64(1_000 + below(behind, 29_000))
	default:
		c.Time -= int64(31_000 + below(behind, 29_000))
	}
	return c
}

// mix is splitmix64.
func mix(z uint64) uint64 {
	z += 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// below maps a draw to 0..n-1 evenly.
func below(draw, n uint64) uint64 {
	high, _ := bits.Mul64(draw, n)
	return high
}

// Partition is where the Java clients put a key.
func Partition(key []byte, n int) int32 { return record.PartitionOf(key, int32(n)) }
