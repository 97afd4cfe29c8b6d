package e2e

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"millrace/devbroker"
	"millrace/record"
)

// Event time of the input. It lies years back on purpose: nothing may depend on the wall clock.
const (
	firstTime = int64(1_600_000_000_000)
	minute    = int64(60_000)
	lateness  = 30_000 // ms; allowed_lateness of the windowed jobs
)

// click is one input record. N is unique within a run, so that a late or copied record can be told from any other.
type click struct {
	N         int64
	User, Ad  string
	Time      int64
	Cents     int64
	partition int32
	flush     bool // closes all windows before it, and is in none that closes
}

func (c click) record() devbroker.Record {
	value := fmt.Sprintf(`{"n":%d,"user":%q,"ad":%q,"ts":%d,"amount":%d.%02d}`, c.N, c.User, c.Ad, c.Time, c.Cents/100, c.Cents%100)
	return devbroker.Record{Key: []byte(c.User), Value: []byte(value), Timestamp: c.Time}
}

// generator makes the input of each partition: event time goes on with disorder, one record in twenty comes after its
// window may have closed, and once in the middle time jumps by hours. What it made is the input of the oracle.
type generator struct {
	random     *rand.Rand
	partitions int32
	users      [][]string // by partition
	now        []int64    // event time by partition
	jumpAt     []int
	made       []int // records by partition
	next       int64
	all        []click // in the order of making, which is each partition's order in the topic
}

func newGenerator(seed uint64, partitions int32, jumpBefore int) *generator {
	g := &generator{random: rand.New(rand.NewPCG(seed, 17)), partitions: partitions, users: make([][]string, partitions),
		now: make([]int64, partitions), jumpAt: make([]int, partitions), made: make([]int, partitions)}
	for i := 0; i < 12*int(partitions); i++ {
		user := "user-" + strconv.Itoa(i)
		p := record.PartitionOf([]byte(user), partitions)
		g.users[p] = append(g.users[p], user)
	}
	for p := range g.now {
		g.now[p] = firstTime + int64(p)*1000
		g.jumpAt[p] = jumpBefore/2 + g.random.IntN(jumpBefore/2+1)
	}
	return g
}

// take makes the next n records of every partition.
func (g *generator) take(n int) []click {
	from := len(g.all)
	for range n {
		for p := range g.partitions {
			g.all = append(g.all, g.one(p))
		}
	}
	return g.all[from:]
}

func (g *generator) one(p int32) click {
	r := g.random
	g.now[p] += 200 + r.Int64N(1600)
	if g.made[p]++; g.made[p] == g.jumpAt[p] {
		g.now[p] += 3 * 60 * minute
	}
	at := g.now[p]
	switch d := r.IntN(100); {
	case d < 5:
		at -= 31_000 + r.Int64N(2*minute)
	case d < 30:
		at -= r.Int64N(25_000)
	}
	g.next++
	users := g.users[p]
	return click{N: g.next, User: users[r.IntN(len(users))], Ad: "ad-" + strconv.Itoa(r.IntN(20)), Time: at, Cents: r.Int64N(100_000), partition: p}
}

// finish makes one record a partition that is so far ahead that every window before it closes. All are of one time, so
// that a minimum over partitions gets there too.
func (g *generator) finish() []click {
	end := firstTime
	for _, t := range g.now {
		end = max(end, t)
	}
	end += 24 * 60 * minute
	from := len(g.all)
	for p := range g.partitions {
		g.next++
		g.all = append(g.all, click{N: g.next, User: g.users[p][0], Ad: "ad-flush", Time: end, partition: p, flush: true})
	}
	return g.all[from:]
}

// recordsOf picks the records of one partition.
func recordsOf(clicks []click, partition int32) []devbroker.Record {
	var records []devbroker.Record
	for _, c := range clicks {
		if c.partition == partition {
			records = append(records, c.record())
		}
	}
	return records
}
