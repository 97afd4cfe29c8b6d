package clicks

import "encoding/binary"

// Sequence is a digest of records in the order of their partitions: one that is lost, doubled, changed or overtaken
// changes it.
type Sequence struct {
	Records uint64
	chains  []uint64 // one a partition
}

// NewSequence returns the digest of nothing.
func NewSequence(partitions int) *Sequence {
	return &Sequence{chains: make([]uint64, partitions)}
}

// Add takes the next record of a partition.
func (s *Sequence) Add(partition int32, key, value []byte, timestamp int64) {
	s.Records++
	chain := &s.chains[partition]
	*chain = mix(*chain ^ hash(key) ^ mix(hash(value)+uint64(timestamp)))
}

// Digest is one number for all partitions.
func (s *Sequence) Digest() uint64 {
	digest := s.Records
	for _, c := range s.chains {
		digest = mix(digest ^ c)
	}
	return digest
}

// hash need not be strong, only independent of any program that is measured.
func hash(b []byte) uint64 {
	h := uint64(len(b))
	for ; len(b) >= 8; b = b[8:] {
		h = mix(h ^ binary.LittleEndian.Uint64(b))
	}
	for _, c := range b {
		h = h<<8 | h>>56 ^ uint64(c)
	}
	return mix(h)
}

// Passed is what the job that passes everything must write for the first n records.
func (s Stream) Passed(n uint64) *Sequence {
	return s.sequence(n, func(b []byte, c Click) ([]byte, bool) { return s.AppendValue(b, c), true })
}

// Filtered is what the filtering job must write for the first n records.
func (s Stream) Filtered(n uint64) *Sequence {
	return s.sequence(n, appendFiltered)
}

func (s Stream) sequence(n uint64, write func([]byte, Click) ([]byte, bool)) *Sequence {
	want := NewSequence(s.Partitions)
	var key, value []byte
	for i := range n {
		c := s.At(i)
		var kept bool
		if value, kept = write(value[:0], c); kept {
			key = AppendUser(key[:0], c.User)
			want.Add(Partition(key, s.Partitions), key, value, c.Time)
		}
	}
	return want
}
