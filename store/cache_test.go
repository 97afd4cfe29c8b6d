package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"millrace/record"
)

// counting is a Memory that counts what it is asked, and fails when told.
type counting struct {
	*Memory
	gets, rows, drops int
	fail              error
	hold              chan struct{} // a flush waits for it
}

func (c *counting) Get(key []byte) ([]byte, bool, error) {
	c.gets++
	return c.Memory.Get(key)
}

func (c *counting) Flush(rows []Row, drop [][]byte, at Checkpoint) error {
	if c.hold != nil {
		<-c.hold
	}
	if c.fail != nil {
		return c.fail
	}
	c.rows += len(rows)
	c.drops += len(drop)
	return c.Memory.Flush(rows, drop, at)
}

// bench is a State of one store with an epoch's routine in short words.
type bench struct {
	*testing.T
	*State
	engine *counting
	now    time.Time
	end    record.Offset
}

func newBench(t *testing.T, cacheBytes int) *bench {
	b := &bench{T: t, engine: &counting{Memory: NewMemory()}, now: time.Unix(1000, 0)}
	b.reopen(cacheBytes)
	return b
}

func (b *bench) reopen(cacheBytes int) {
	b.Helper()
	s, err := Open(b.engine, Options{Stores: []string{"s"}, CacheBytes: cacheBytes, FlushInterval: time.Second})
	if err != nil {
		b.Fatal(err)
	}
	b.State = s
	b.Cleanup(func() { s.Close() })
}

func (b *bench) save(segment int64, key, value string) {
	b.Helper()
	b.load(segment, key)
	b.Store(0).Save(segment, []byte(key), []byte(value), false)
}

func (b *bench) remove(segment int64, key string) {
	b.Helper()
	b.load(segment, key)
	b.Store(0).Delete(segment, []byte(key))
}

func (b *bench) load(segment int64, key string) string {
	b.Helper()
	v, ok, err := b.Store(0).Load(segment, []byte(key))
	if err != nil {
		b.Fatal(err)
	}
	if !ok {
		return "-"
	}
	return string(v)
}

func (b *bench) commit() {
	b.Helper()
	b.Freeze()
	b.end++
	b.Commit([]record.Offset{b.end}, b.now)
}

func (b *bench) flush() {
	b.Helper()
	if _, err := b.Flush(b.now); err != nil {
		b.Fatal(err)
	}
}

// A window that closes before it was ever flushed never reaches the engine, and neither does a row that ended.
func TestWhatEndsBeforeAFlushNeverReachesTheEngine(t *testing.T) {
	b := newBench(t, 1<<20)
	b.save(10, "a", "1")
	b.save(0, "k", "1")
	b.commit()
	b.remove(10, "a")
	b.Store(0).DropSegment(10)
	b.remove(0, "k")
	b.commit()
	b.flush()
	if b.engine.rows != 0 || b.engine.drops != 0 {
		t.Errorf("%d rows and %d drops went to the engine", b.engine.rows, b.engine.drops)
	}
	if c, ok, _ := b.engine.Checkpoint(); !ok || c.Positions[0] != 2 {
		t.Errorf("checkpoint %+v %v", c, ok)
	}
}

func TestAFlushedSegmentIsDroppedAsAWhole(t *testing.T) {
	b := newBench(t, 1<<20)
	for i := range 10 {
		b.save(10, fmt.Sprint(i), "1")
	}
	b.commit()
	b.flush()
	if b.engine.rows != 10 {
		t.Fatalf("%d rows", b.engine.rows)
	}
	for i := range 10 {
		b.remove(10, fmt.Sprint(i))
	}
	b.Store(0).DropSegment(10)
	b.commit()
	if got := b.Store(0).Segments(); len(got) != 0 {
		t.Errorf("segments %v after all have ended", got)
	}
	b.flush()
	if b.engine.rows != 10 || b.engine.drops != 1 || len(b.engine.Memory.rows) != 0 {
		t.Errorf("%d rows written, %d drops, %d rows left", b.engine.rows, b.engine.drops, len(b.engine.Memory.rows))
	}
}

func TestARowIsReadFromTheEngineOnce(t *testing.T) {
	b := newBench(t, 1<<20)
	b.save(0, "k", "1")
	b.commit()
	b.flush()
	b.reopen(1 << 20)
	for range 3 {
		if got := b.load(0, "k") + b.load(0, "absent"); got != "1-" {
			t.Fatalf("got %s", got)
		}
	}
	if b.engine.gets != 2 {
		t.Errorf("the engine was asked %d times for two keys", b.engine.gets)
	}
	if hits, misses := b.CacheStats(); hits != 4 || misses != 2 {
		t.Errorf("%d hits, %d misses", hits, misses)
	}
	if b.load(7, "k"); b.engine.gets != 2 {
		t.Error("the engine was asked for a segment that it has not")
	}
}

// While a flush is under way rows change again: the flush must not make them look clean.
func TestARowThatChangesInFlightStaysDirty(t *testing.T) {
	b := newBench(t, 1<<20)
	b.engine.hold = make(chan struct{}, 1)
	for i, change := range []func(k string){func(k string) { b.save(0, k, "2") }, func(k string) { b.remove(0, k) }, func(k string) { b.save(0, k, "3") }} {
		k := fmt.Sprint("k", i)
		b.save(0, k, "1")
		b.commit()
		b.StartFlush(b.now)
		change(k)
		b.commit()
		want := b.load(0, k)
		b.engine.hold <- struct{}{}
		if _, done, err := b.Flushed(true); !done || err != nil {
			t.Fatal(done, err)
		}
		b.engine.hold <- struct{}{}
		b.flush()
		b.reopen(1 << 20)
		if got := b.load(0, k); got != want {
			t.Errorf("change %d: the engine has %q, want %q", i, got, want)
		}
		b.end = b.Position(0)
	}
}

// A flush that failed has marked rows as written which are not. A later checkpoint would claim them.
func TestAfterAFailedFlushNoCheckpointIsWritten(t *testing.T) {
	b := newBench(t, 1<<20)
	b.save(0, "a", "1")
	b.commit()
	b.flush()
	b.save(0, "b", "1")
	b.commit()
	b.engine.fail, b.engine.hold = errors.New("no space left on device"), make(chan struct{}, 1)
	b.StartFlush(b.now)
	b.save(0, "c", "1")
	b.commit() // dirty again while the flush is under way
	b.engine.hold <- struct{}{}
	if _, done, err := b.Flushed(true); !done || err == nil {
		t.Fatalf("done %v, error %v", done, err)
	}
	b.engine.fail, b.engine.hold = nil, nil
	if b.FlushDue(b.now.Add(time.Hour)) {
		t.Error("a flush is due after one has failed")
	}
	if _, err := b.Flush(b.now); err == nil {
		t.Error("a flush succeeded after one has failed")
	}
	b.reopen(1 << 20)
	if b.Position(0) != 1 || b.load(0, "a") != "1" {
		t.Errorf("position %d, a is %s", b.Position(0), b.load(0, "a"))
	}
}

func TestACacheOverItsBoundIsFlushedAndForgotten(t *testing.T) {
	b := newBench(t, 10_000)
	for i := range 1000 {
		b.save(0, fmt.Sprint("key ", i), "0123456789")
	}
	b.commit()
	if !b.FlushDue(b.now) || !b.Full() {
		t.Fatalf("due %v full %v with %d bytes of 10000", b.FlushDue(b.now), b.Full(), b.CacheBytes())
	}
	b.flush()
	if b.Full() {
		t.Error("full with nothing dirty: no flush would ever end it")
	}
	b.Trim()
	if b.CacheBytes() > 10_000 {
		t.Errorf("%d bytes stay", b.CacheBytes())
	}
	for i := range 1000 {
		if got := b.load(0, fmt.Sprint("key ", i)); got != "0123456789" {
			t.Fatalf("key %d is %q", i, got)
		}
	}
}

// A row that is used survives the generation that it came with; one that is not used does not.
func TestUsedRowsSurviveARotation(t *testing.T) {
	b := newBench(t, 1<<20)
	b.save(0, "used", "1")
	b.save(0, "unused", "1")
	b.commit()
	b.flush()
	c := &b.Store(0).cache
	c.rotate()
	b.load(0, "used")
	c.rotate()
	gets := b.engine.gets
	if b.load(0, "used"); b.engine.gets != gets {
		t.Error("a used row was forgotten")
	}
	if b.load(0, "unused"); b.engine.gets != gets+1 {
		t.Error("an unused row was kept")
	}
}

func TestAPositionAloneIsFlushedAfterTheInterval(t *testing.T) {
	b := newBench(t, 1<<20)
	b.commit()
	if b.FlushDue(b.now.Add(time.Second - 1)) {
		t.Error("due before the interval")
	}
	if !b.FlushDue(b.now.Add(time.Second)) {
		t.Error("not due after the interval")
	}
	b.flush()
	if b.FlushDue(b.now.Add(time.Hour)) {
		t.Error("due with nothing new")
	}
}

func TestOpenRefusesAnotherNumberOfStores(t *testing.T) {
	m := NewMemory()
	if err := m.Flush(nil, nil, Checkpoint{Positions: []record.Offset{1, 2}}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(m, Options{Stores: []string{"one"}}); err == nil {
		t.Error("two stores were opened as one")
	}
}

func TestAScratchForgetsEverything(t *testing.T) {
	scratch := NewScratch()
	s, empty := scratch.Store, scratch.Empty
	for round := range 3 {
		for i := range 100 {
			key := []byte(fmt.Sprint(i))
			if _, ok, err := s.Load(0, key); ok || err != nil {
				t.Fatalf("round %d: %s is there (%v)", round, key, err)
			}
			s.Save(0, key, []byte("v"), true)
		}
		n := 0
		if err := s.Changed(func(int64, []byte, []byte) error { n++; return nil }); err != nil || n != 100 {
			t.Fatalf("%d changed, %v", n, err)
		}
		empty()
	}
}

func TestChangedEndsWithTheFirstError(t *testing.T) {
	b := newBench(t, 1<<20)
	for i := range 3 {
		b.load(0, fmt.Sprint(i))
		b.Store(0).Save(0, []byte(fmt.Sprint(i)), []byte("v"), true)
	}
	stop, n := errors.New("stop"), 0
	err := b.Store(0).Changed(func(int64, []byte, []byte) error {
		if n++; n == 2 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || n != 2 {
		t.Errorf("%d visited, error %v", n, err)
	}
}

// Rows in memory are read, written and frozen without an object on the heap.
func TestWarmRowsCostNoAllocation(t *testing.T) {
	b := newBench(t, 1<<20)
	key, value := []byte("some key"), []byte("12345678")
	st := b.Store(0)
	step := func() {
		if _, _, err := st.Load(5, key); err != nil {
			t.Fatal(err)
		}
		st.Save(5, key, value, true)
	}
	step()
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("%.2f allocations for a row of this epoch", n)
	}
	b.commit()
	read := func() {
		if _, ok, err := st.Load(5, key); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if n := testing.AllocsPerRun(1000, read); n != 0 {
		t.Errorf("%.2f allocations for a committed row", n)
	}
	epoch := func() {
		step()
		b.Freeze()
		b.State.Commit(nil, b.now)
	}
	epoch()
	epoch()
	if n := testing.AllocsPerRun(200, epoch); n > 2 {
		t.Errorf("%.2f allocations for a whole epoch", n)
	}
}
