package config

import (
	"millrace/record"
	"millrace/topology"
)

// Test is one story of `tests:`: records and events in, what must come out.
type Test struct {
	Name       topology.Text
	Partitions int // of every source topic; at least 1
	Input      []TestStep
	Expect     []SinkExpectation // in the order of the file
	// ExpectNoOutput names sinks that must stay empty.
	ExpectNoOutput []topology.Text
	// ExpectDeadLetters is what the dead-letter topic must hold, when DeadLetters is set; an empty list means nothing.
	ExpectDeadLetters []ExpectedRecord
	DeadLetters       bool
	// ExpectCounts compares the tallies of the whole test.
	ExpectCounts []CountExpectation
}

// TestStepKind says what a step of a test's input does.
type TestStepKind uint8

// The steps of a test's input.
const (
	StepRecord           TestStepKind = iota // Record arrives
	StepAdvanceWallClock                     // the clock moves by Advance: idle timeouts run
	StepAdvanceWatermark                     // the watermark of Source moves to To in all partitions
	StepRestart                              // the process ends and starts again from its committed state
	StepRebalance                            // every task is given up and taken again
	StepCommit                               // the epoch is committed
)

// TestStep is one item of `input:`.
type TestStep struct {
	Pos     topology.Pos
	Kind    TestStepKind
	Record  TestRecord
	Advance topology.Span
	Source  topology.Text
	To      int64 // ms since the epoch
}

// Datum is a key or a value as a test writes it; which form counts depends on the format it is encoded with.
type Datum struct {
	Pos  topology.Pos
	Set  bool   // it was written at all
	Null bool   // written as null: no key, or a tombstone
	Text string // of a plain value, as written
	JSON []byte // the same as JSON text
	Raw  bool   // Text holds the bytes themselves, whatever the format
}

// TestHeader is one header of a record; a null Value is a header without one.
type TestHeader struct {
	Name  topology.Text
	Value Datum
}

// TestRecord is one record that a test sends.
type TestRecord struct {
	Source       topology.Text
	Key, Value   Datum
	Headers      []TestHeader
	Timestamp    int64 // ms since the epoch
	HasTimestamp bool
	Partition    int32 // -1: the one that the key hashes to
}

// ExpectedRecord is one record that a test waits for. Only what is set is compared.
type ExpectedRecord struct {
	Pos          topology.Pos
	Key, Value   Datum
	Subset       bool // match: subset; the value may have more fields than are written
	Tombstone    bool
	Headers      []TestHeader // the record may have more
	Timestamp    int64        // ms since the epoch
	HasTimestamp bool
	Partition    int32         // -1: any
	Source       topology.Text // of a dead letter
	Reason       topology.Text // of a dead letter: deserialization, processing, production, timestamp
}

// SinkExpectation is what a sink must hold in the end: exactly these records; in order within a partition.
type SinkExpectation struct {
	Sink    topology.Text
	Records []ExpectedRecord
}

// CountExpectation compares one tally of a source, step or sink.
type CountExpectation struct {
	Where   topology.Text
	Outcome record.Outcome
	Pos     topology.Pos // of the number
	N       int64
}

// outcomeWords are the keys of `expect_counts:`.
var outcomeWords = map[string]record.Outcome{
	"consumed": record.Consumed, "in": record.In, "out": record.Out, "late": record.Late, "late_windows": record.LateWindow,
	"filtered": record.Filtered, "dropped": record.Dropped, "dead_lettered": record.DeadLettered, "produced": record.Produced,
	"windows_closed": record.WindowClosed, "expired": record.Expired, "expression_errors": record.ExpressionError,
}

var outcomeOrder = []string{"consumed", "in", "out", "late", "late_windows", "filtered", "dropped", "dead_lettered", "produced",
	"windows_closed", "expired", "expression_errors"}
