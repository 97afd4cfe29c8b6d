package kafka

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime is what the process has used of the processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // Linux always answers for the process itself.
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEpoch commits epochs of 80 000 records; with MILLRACE_TEST_BROKERS the broker is another process, and the CPU
// time of this one is the client's.
func BenchmarkEpoch(b *testing.B) {
	for _, compression := range []string{"none", "lz4"} {
		b.Run(compression, func(b *testing.B) {
			bench := newBench(b, 1)
			config := bench.config()
			config.MaxBatchBytes, config.Compression = 512<<10, compression
			c := bench.caller(config, bench.topic("in", 1, nil))
			boxes := boxesOf(bench.topic("out", 8, nil), 8, 10_000)
			n := int64(0)
			epoch := func() {
				n++
				if _, err := c.commit(c.epoch(n, boxes...), 30*time.Second); err != nil {
					b.Fatal(err)
				}
			}
			epoch()
			before := cpuTime()
			b.ReportAllocs()
			for b.Loop() {
				epoch()
			}
			b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/float64(b.N)/80_000/1000, "cpu-µs/record")
		})
	}
}
