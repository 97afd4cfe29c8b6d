package task

import (
	"sync"

	"millrace/record"
)

// inbox holds the fetched batches that a task has not processed. The fetcher puts in whole batches and stops at a bound
// a partition, so a slow task pauses its own partitions and nobody else's.
type inbox struct {
	mu     sync.Mutex
	queues []queue
	failed error
	ready  chan struct{} // one token: something was put in
	drain  func()        // tells the fetcher that a full queue has room
}

type queue struct {
	batches []record.Batch
	bytes   int
	end     record.Offset // high watermark as of the last answer
	heard   bool          // the broker has answered since the start
}

// inboxBytes bounds what waits of one partition, so that a fetch is on its way while one is worked on. Decoded records are
// full of pointers: more of them would only make the collector slower.
const inboxBytes = 1 << 20

// weight is the memory that a waiting batch takes, with what decoding has put around its records.
func weight(b record.Batch) int { return b.Bytes + recordBytes*len(b.Records) }

const recordBytes = 3*24 + 2*8 // of a record.Record: three slices and two numbers

func newInbox(inputs int, drain func()) *inbox {
	return &inbox{queues: make([]queue, inputs), ready: make(chan struct{}, 1), drain: drain}
}

// port is the inbox as the fetcher sees one partition of it.
type port struct {
	inbox *inbox
	input int
}

func (p port) Full() bool {
	p.inbox.mu.Lock()
	defer p.inbox.mu.Unlock()
	return p.inbox.queues[p.input].bytes >= inboxBytes || p.inbox.failed != nil
}

func (p port) Offer(b record.Batch) {
	p.inbox.mu.Lock()
	q := &p.inbox.queues[p.input]
	q.end, q.heard = b.End, true
	q.batches = append(q.batches, b)
	q.bytes += weight(b)
	p.inbox.mu.Unlock()
	p.inbox.signal()
}

func (p port) Fail(err error) {
	p.inbox.mu.Lock()
	p.inbox.failed = err
	p.inbox.mu.Unlock()
	p.inbox.signal()
}

func (i *inbox) signal() {
	select {
	case i.ready <- struct{}{}:
	default:
	}
}

// take returns the batch whose next record is the oldest in event time as far as the topic knows it, so that inputs
// are read side by side. Batches without records come first: they only move positions.
func (i *inbox) take() (b record.Batch, input int, ok bool, err error) {
	i.mu.Lock()
	if i.failed != nil {
		err = i.failed
		i.mu.Unlock()
		return b, 0, false, err
	}
	input = -1
	var oldest int64
	for n := range i.queues {
		q := &i.queues[n]
		if len(q.batches) == 0 {
			continue
		}
		first := q.batches[0]
		if len(first.Records) == 0 {
			input = n
			break
		}
		if at := first.Records[0].Timestamp; input < 0 || at < oldest {
			input, oldest = n, at
		}
	}
	if input < 0 {
		i.mu.Unlock()
		return b, 0, false, nil
	}
	q := &i.queues[input]
	b = q.batches[0]
	q.batches[0] = record.Batch{}
	q.batches = q.batches[1:]
	was := q.bytes
	q.bytes -= weight(b)
	room := was >= inboxBytes && q.bytes < inboxBytes
	i.mu.Unlock()
	if room {
		i.drain()
	}
	return b, input, true, nil
}

// oldest is the timestamp of the first record that waits of an input.
func (i *inbox) oldest(input int) int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, b := range i.queues[input].batches {
		if len(b.Records) > 0 {
			return b.Records[0].Timestamp
		}
	}
	return record.NoTime
}

// lag returns how many offsets of an input are not processed yet, given the position of the task; known is false before
// the broker has answered.
func (i *inbox) lag(input int, position record.Offset) (lag int64, known bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	q := &i.queues[input]
	return max(q.end-position, 0), q.heard
}

// quiet tells whether an input has been read to the end of its log and processed.
func (i *inbox) quiet(input int, position record.Offset) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	q := &i.queues[input]
	return q.heard && len(q.batches) == 0 && position >= q.end
}
