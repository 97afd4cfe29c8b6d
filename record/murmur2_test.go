package record

import "testing"

// The hashes are those of UtilsTest.testMurmur2 in Apache Kafka's clients.
func TestMurmur2IsJavas(t *testing.T) {
	for key, want := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		if got := int32(Murmur2([]byte(key))); got != want {
			t.Errorf("%q: %d, want %d", key, got, want)
		}
	}
}

// Two of these hashes are negative.
func TestPartitionOfIsNeverNegative(t *testing.T) {
	for key, want := range map[string]int32{"21": 0, "foobar": 6, "abc": 7} {
		if got := PartitionOf([]byte(key), 10); got != want {
			t.Errorf("%q: partition %d of 10, want %d", key, got, want)
		}
	}
}
