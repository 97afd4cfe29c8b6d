package task

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/changelog"
	"millrace/config"
	"millrace/eos"
	"millrace/formats"
	"millrace/record"
	"millrace/store"
	"millrace/topology"
)

const jobHead = "version: 1\napplication_id: app\nkafka: { bootstrap_servers: [\"localhost:9092\"] }\nstate: { dir: ./state }\n"

// compile plans a job from the part of a configuration that follows its head.
func compile(t testing.TB, text string) *topology.Plan {
	t.Helper()
	file := filepath.Join(t.TempDir(), "job.yaml")
	if err := os.WriteFile(file, []byte(jobHead+text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, found := config.Load(config.LoadOptions{Files: []string{file}, Environ: func(string) (string, bool) { return "", false }})
	for _, f := range found {
		if f.Severity == topology.Error {
			t.Fatalf("%s: %s\n%s", f.Pos, f.Message, text)
		}
	}
	plan, found := topology.Compile(&c.Spec, topology.Options{Formats: formats.ByName{}})
	if plan == nil {
		t.Fatalf("%+v\n%s", found, text)
	}
	return plan
}

// countJob counts records by key; watermark is the source's.
func countJob(watermark string) string {
	return `topology:
  sources: { in: { topic: in, format: string, key: key` + watermark + ` } }
  steps:
    counts: { from: in, group_by: key, aggregate: { n: count() }, ttl: forever, select: { n: value.n }, to: out }
  sinks: { out: { topic: out } }
`
}

func tp(topic string, partition int32) record.TopicPartition {
	return record.TopicPartition{Topic: topic, Partition: partition}
}

// brokers is a cluster in memory: logs, and the offsets of the group. A test sets it up as it likes.
type brokers struct {
	logs      map[record.TopicPartition][]record.Record
	starts    map[record.TopicPartition]record.Offset
	offsets   map[record.TopicPartition]record.Committed
	retention time.Duration     // of tombstones
	ids       map[string]string // of topics
	fail      error
	opened    int // changelogs that are open
	asked     []string
}

func newBrokers() *brokers {
	return &brokers{logs: map[record.TopicPartition][]record.Record{}, starts: map[record.TopicPartition]record.Offset{}, offsets: map[record.TopicPartition]record.Committed{}}
}

func (b *brokers) StableOffsets(_ context.Context, tps []record.TopicPartition) (map[record.TopicPartition]record.Committed, error) {
	b.asked = append(b.asked, "offsets")
	found := map[record.TopicPartition]record.Committed{}
	for _, p := range tps {
		found[p] = record.Committed{Next: -1}
		if o, ok := b.offsets[p]; ok {
			found[p] = o
		}
	}
	return found, b.fail
}

func (b *brokers) StartOffset(_ context.Context, p record.TopicPartition) (record.Offset, error) {
	return b.starts[p], nil
}

func (b *brokers) EndOffset(_ context.Context, p record.TopicPartition) (record.Offset, error) {
	b.asked = append(b.asked, "end of "+p.String())
	return record.Offset(len(b.logs[p])), nil
}

func (b *brokers) Changelog(p record.TopicPartition) (changelog.Reader, func(), error) {
	b.opened++
	return log{b, p}, func() { b.opened-- }, nil
}

func (b *brokers) TopicID(_ context.Context, tp record.TopicPartition) (string, error) {
	return b.ids[tp.Topic], nil
}

func (b *brokers) TombstoneRetention(context.Context, string) time.Duration { return b.retention }

type log struct {
	*brokers
	at record.TopicPartition
}

func (l log) Read(ctx context.Context, from record.Offset) (record.Batch, error) {
	if err := ctx.Err(); err != nil {
		return record.Batch{}, err
	}
	all := l.logs[l.at]
	next := min(from+3, record.Offset(len(all)))
	return record.Batch{From: l.at, Records: all[from:next], Next: next, End: record.Offset(len(all))}, nil
}

func (b *brokers) append(p record.TopicPartition, r record.Record) record.Offset {
	r.Offset = record.Offset(len(b.logs[p]))
	r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
	b.logs[p] = append(b.logs[p], r)
	return r.Offset + 1
}

// commit does what a transaction does, and returns the changelogs' ends.
func (b *brokers) commit(p *eos.Part) []record.Offset {
	ends := map[record.TopicPartition]record.Offset{}
	for _, box := range slices.Concat(p.Outputs, p.Changelogs) {
		for c := box.Walk(); ; {
			r, ok := c.Next()
			if !ok {
				break
			}
			ends[box.To] = b.append(box.To, r)
		}
	}
	for _, o := range p.Offsets {
		b.offsets[o.TopicPartition] = record.Committed{Next: o.Next, Metadata: o.Metadata}
	}
	return eos.Result{Ends: ends}.ChangelogEnds(*p)
}

// bench is one task's surroundings: brokers, a clock that is set by hand, and a place for rows that outlives the task.
type bench struct {
	testing.TB
	*brokers
	plan    *topology.Plan
	now     time.Time
	engine  store.Engine
	id      record.TaskID
	options Options
	warned  []string
	told    []string // restores
	hurried int
	wiped   int
	flushed int
}

func newBench(t testing.TB, job string) *bench {
	b := &bench{TB: t, brokers: newBrokers(), plan: compile(t, job), now: time.Unix(1_000_000, 0), engine: store.NewMemory()}
	b.options = Options{Plan: b.plan, Formats: formats.ByName{}, Cluster: b.brokers, Listener: b, Partitions: func(string) int32 { return 4 },
		Writers: func(string) int32 { return 4 }, Drained: func() {}, Hurry: func() { b.hurried++ }, Clock: func() time.Time { return b.now },
		OpenEngine: func(record.TaskID, []string) (store.Engine, store.OpenResult, error) {
			return b.engine, store.OpenResult{StoreID: "first"}, nil
		},
		Wipe: func(record.TaskID) error {
			b.wiped++
			b.engine = store.NewMemory()
			return nil
		},
		TransactionalID: "app-1", ExactlyOnce: true, FlushInterval: time.Minute, FlushSlots: make(chan struct{}, 1), CacheBytes: 1 << 20, EpochBytes: 1 << 20, MaxRecordBytes: 1 << 20}
	return b
}

func (b *bench) RestoreStarted(_ record.TaskID, store string, from, to int64, reused bool) {
	b.told = append(b.told, fmt.Sprintf("%s %d-%d reused %v", store, from, to, reused))
}
func (b *bench) RestoreGivenUp(task record.TaskID, store string) {
	b.told = append(b.told, task.String()+" "+store+" given up")
}

func (b *bench) RestoreProgress(record.TaskID, string, int64, int64) {
	b.told = append(b.told, "progress")
}
func (b *bench) Restored(_ record.TaskID, store string, _ bool, replayed int64, _ time.Duration) {
	b.told = append(b.told, fmt.Sprintf("%s replayed %d", store, replayed))
}
func (b *bench) Flushed(record.TaskID, int, int64, time.Duration) { b.flushed++ }
func (b *bench) Warn(code, message string, fields ...any) {
	b.warned = append(b.warned, code+" "+message+" "+fmt.Sprint(fields...))
}

// start starts the task and drives it by hand.
func (b *bench) start(kept *store.State) *hand {
	b.Helper()
	t, err := Start(context.Background(), b.id, b.options, kept)
	if err != nil {
		b.Fatal(err)
	}
	return &hand{b, Manual{t}}
}

// hand works a task step by step, with words for what tests do often.
type hand struct {
	*bench
	Manual
}

// offer gives the task the records of its inputs' logs that it has not been given, and where they end.
func (h *hand) offer() {
	for _, r := range h.Readings() {
		all := h.logs[r.From]
		end := record.Offset(len(all))
		r.Sink.Offer(record.Batch{From: r.From, Records: all[min(r.Next, end):], Next: end, End: end})
	}
}

// work lets the task do all that it has.
func (h *hand) work() {
	h.bench.Helper()
	for {
		worked, err := h.Step()
		if err != nil {
			h.Fatal(err)
		}
		if !worked {
			return
		}
	}
}

// round takes what is in the logs, works on it and commits it.
func (h *hand) round() {
	h.bench.Helper()
	h.offer()
	h.work()
	h.epoch()
}

// epoch ends the epoch and commits it.
func (h *hand) epoch() {
	h.bench.Helper()
	p, err := h.Freeze()
	if err != nil {
		h.Fatal(err)
	}
	if p != nil {
		h.Committed(h.commit(p))
	}
}

// input appends records to the task's partition of the topic in: "k 5" is key and time.
func (b *bench) input(texts ...string) {
	for _, text := range texts {
		var r record.Record
		key, at, _ := strings.Cut(text, " ")
		if _, err := fmt.Sscan(at, &r.Timestamp); err != nil {
			b.Fatal(err)
		}
		r.Key, r.Value = []byte(key), []byte("v")
		b.append(tp("in", b.id.Partition), r)
	}
}

// results are the last values that a topic has for each key.
func (b *bench) results(topic string) string {
	last := map[string]string{}
	for p, l := range b.logs {
		if p.Topic == topic {
			for _, r := range l {
				last[string(r.Key)] = string(r.Value)
			}
		}
	}
	var all []string
	for _, k := range slices.Sorted(maps.Keys(last)) {
		all = append(all, k+"="+last[k])
	}
	return strings.Join(all, " ")
}
