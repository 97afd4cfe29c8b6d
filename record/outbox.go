package record

// Outbox collects the records that one epoch writes to one partition, already as they go over the wire, in order. It keeps
// no pointers per record, so that a million waiting records cost the garbage collector nothing, and it grows by runs, so
// that nothing is copied when an epoch turns out larger than the last.
type Outbox struct {
	To    TopicPartition
	Count int
	runs  []Run
	used  int // runs in use; the ones behind keep their memory for the next epoch
	bytes int
}

// Run is a row of records that can make one batch. Their distances are from First and from offset 0. It belongs to its
// outbox and lives until that is reset.
type Run struct {
	Records               []byte
	Count                 int
	First, Oldest, Newest int64 // timestamps, ms: of the first record, and the extremes
}

// runBytes is the size of a run; a larger record has one of its own. The first run starts small, because most partitions
// of a wide topic get little.
const (
	runBytes = 256 << 10
	firstRun = 1 << 10
)

// Bytes is the size of what waits.
func (o *Outbox) Bytes() int { return o.bytes }

// Runs returns what waits, in order.
func (o *Outbox) Runs() []Run { return o.runs[:o.used] }

// Reset empties the outbox and keeps its memory for the next epoch: as much as this one needed, or three quarters of what
// there was, so that one large epoch is forgotten after some small ones. Runs of single large records are not kept.
func (o *Outbox) Reset() {
	most := max(o.used, len(o.runs)*3/4)
	kept := o.runs[:0]
	for _, r := range o.runs {
		if cap(r.Records) <= runBytes && len(kept) < most {
			kept = append(kept, Run{Records: r.Records[:0]})
		}
	}
	clear(o.runs[len(kept):])
	o.runs, o.used, o.Count, o.bytes = kept, 0, 0, 0
}

// Append adds a record; all bytes are copied. nil key and value are kept apart from empty ones.
func (o *Outbox) Append(key, value []byte, headers []Header, timestamp int64) {
	most := MaxFraming + len(key) + len(value)
	for i := range headers {
		most += MaxFraming + len(headers[i].Key) + len(headers[i].Value)
	}
	run := o.room(most)
	before := len(run.Records)
	run.Append(&Record{Key: key, Value: value, Headers: headers, Timestamp: timestamp})
	o.bytes += len(run.Records) - before
	o.Count++
}

// Append adds a record to the run, whatever its size is then.
func (r *Run) Append(in *Record) {
	if r.Count == 0 {
		r.First, r.Oldest, r.Newest = in.Timestamp, in.Timestamp, in.Timestamp
	}
	r.Oldest, r.Newest = min(r.Oldest, in.Timestamp), max(r.Newest, in.Timestamp)
	r.Records = appendWire(r.Records, in, in.Timestamp-r.First, int64(r.Count))
	r.Count++
}

// room returns the run that has room for size more bytes.
func (o *Outbox) room(size int) *Run {
	if o.used > 0 {
		r := &o.runs[o.used-1]
		have := len(r.Records)
		if have+size <= cap(r.Records) {
			return r
		}
		if o.used == 1 && have+size <= runBytes {
			r.Records = append(make([]byte, 0, min(max(4*cap(r.Records), have+size), runBytes)), r.Records...)
			return r
		}
	}
	capacity := runBytes
	switch {
	case size > runBytes/4:
		capacity = size // few of these fill a run, and much room would be left in each
	case o.used == 0:
		capacity = max(firstRun, size)
	}
	switch {
	case o.used == len(o.runs):
		o.runs = append(o.runs, Run{Records: make([]byte, 0, capacity)})
	case cap(o.runs[o.used].Records) < size:
		o.runs[o.used] = Run{Records: make([]byte, 0, capacity)}
	}
	o.used++
	return &o.runs[o.used-1]
}

// Cursor walks the records of an Outbox. What Next returns aliases the outbox and lives until its Reset.
type Cursor struct {
	runs    []Run
	wire    Wire
	left    int // of the first run
	headers []Header
}

// Walk returns a cursor before the first record.
func (o *Outbox) Walk() Cursor { return WalkRuns(o.Runs()) }

// WalkRuns returns a cursor before the first record of the runs.
func WalkRuns(runs []Run) Cursor {
	c := Cursor{runs: runs}
	c.begin()
	return c
}

func (c *Cursor) begin() {
	if len(c.runs) > 0 {
		c.wire, c.left = WireOf(c.runs[0].Records), c.runs[0].Count
	}
}

// Next returns the next record; ok is false at the end. It has no offset yet. The headers' slice is used again by the next
// call.
func (c *Cursor) Next() (r Record, ok bool) {
	for c.left == 0 {
		if len(c.runs) == 0 {
			return Record{}, false
		}
		c.runs = c.runs[1:]
		c.begin()
	}
	c.left--
	c.headers = c.headers[:0]
	if !c.wire.Next(&r, &c.headers) {
		panic("record: an outbox cannot read what it has written")
	}
	r.Timestamp, r.Offset = r.Timestamp+c.runs[0].First, 0
	return r, true
}
