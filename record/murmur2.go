package record

// Murmur2 is the hash by which Kafka's Java producer chooses a partition: keys must land where Java puts them.
func Murmur2(key []byte) uint32 {
	const m, seed = 0x5bd1e995, 0x9747b28c
	h := uint32(seed) ^ uint32(len(key))
	for ; len(key) >= 4; key = key[4:] {
		k := uint32(key[0]) | uint32(key[1])<<8 | uint32(key[2])<<16 | uint32(key[3])<<24
		k *= m
		k ^= k >> 24
		h = h*m ^ k*m
	}
	switch len(key) {
	case 3:
		h ^= uint32(key[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(key[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(key[0])) * m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}

// PartitionOf returns the partition of a key among n.
func PartitionOf(key []byte, n int32) int32 { return int32(Murmur2(key)&0x7fffffff) % n }
