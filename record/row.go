package record

// Header is one header of a Kafka record.
type Header struct{ Key, Value []byte }

// Record is a Kafka record as it was read. Key, Value and Headers alias the response buffer. A nil Value is a tombstone.
type Record struct {
	Key, Value []byte
	Headers    []Header
	Timestamp  int64 // ms, as the topic has it: set by the producer or by the broker
	Offset     Offset
}

// Batch is what one fetch brought of one partition. Records may be empty: transactions and compaction leave offsets
// without records, and Next still moves.
type Batch struct {
	From    TopicPartition
	Records []Record
	Next    Offset // position after the batch
	End     Offset // high watermark that the broker reported with it
	Bytes   int
	Free    func() // gives the memory back; nil: the garbage collector does
}

// WorkedOff gives the batch's memory back, once. Its records, and all that aliases them, must not be looked at afterwards.
func (b Batch) WorkedOff() {
	if b.Free != nil {
		b.Free()
	}
}

// Window is a half-open interval of event time in ms: [Start, End).
type Window struct{ Start, End int64 }

// Row is one record on its walk through the operators. The task owns one Row and fills it anew for every record; an
// operator that changes what its children see uses a Row of its own. Nothing in it may be kept.
type Row struct {
	Key     []byte // nil: no key
	Value   []byte // the bytes as read, for passing through; nil for a derived row
	Headers []Header
	Time    int64 // event time, ms
	Fields  []Value
	Window  Window // zero where no window was applied
	From    Origin
	Acc     Value // the accumulator, while a fold's expression runs
}

// Origin is where a row came from: the coordinates that errors, dead letters and headers carry.
type Origin struct {
	Topic     string
	Partition int32
	Offset    Offset
	Timestamp int64 // of the Kafka record, ms
}
