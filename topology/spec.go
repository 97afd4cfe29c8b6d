// Package topology turns what the YAML says (Spec) into a checked plan: subtopologies, stores, internal topics and
// compiled operators. It is pure: no clock, network, disk, goroutine or random source.
package topology

import (
	"fmt"
	"time"

	"millrace/record"
)

// Pos is a place in a configuration file; a zero Line means that nothing was written there.
type Pos struct {
	File      string
	Line, Col int
}

func (p Pos) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) }

// Text is a scalar with its place, so that a finding can point into it.
type Text struct {
	Value string
	Pos   Pos
}

// Span is a duration with its place. Set tells a written zero from nothing; Forever is the word "forever".
type Span struct {
	Value        time.Duration
	Set, Forever bool
	Pos          Pos
}

// Named is one entry of an ordered YAML map whose values are expressions.
type Named struct {
	Name Text
	Expr Text
}

// Spec is the `topology:` and `errors:` of a job, as written: names are unresolved, expressions are text.
// Maps are kept in the order of the file.
type Spec struct {
	ApplicationID string
	Sources       []SourceSpec
	Steps         []StepSpec
	Sinks         []SinkSpec
	Errors        ErrorSpec
}

// SourceSpec is one entry of `sources:`.
type SourceSpec struct {
	Name      Text
	Topic     Text
	Format    Text // json, string, long, bytes
	KeyFormat Text // string (default), long, bytes
	Key       Text // the expression that the topic's key equals; empty: learnt at the first start
	Fields    []FieldSpec
	Timestamp Text // an expression that yields a time or milliseconds; empty: the record's own
	Start     Text // earliest (default), latest
	Watermark WatermarkSpec
	// InvalidTimestamp is what a record without a usable time gets: fail (default), dead_letter, skip, partition_time.
	InvalidTimestamp Text
}

// FieldSpec declares one field of a source.
type FieldSpec struct {
	Name Text
	Type record.Type
}

// WatermarkSpec says how a source's event time advances.
type WatermarkSpec struct {
	MaxOutOfOrderness Span
	IdleTimeout       Span // not set: partitions never become idle
	MaxFuture         Span // not set: no guard against broken clocks
	AdvanceOnIdle     bool
}

// StepSpec is one entry of `steps:`.
type StepSpec struct {
	Name      Text
	From      []Text
	Where     Text
	GroupBy   []Named // an unnamed path is named after its last part
	Window    *WindowSpec
	Aggregate []Named // name: call, as in count() or sum(value.cost)
	TTL       Span
	Having    Text
	Select    []Named
	SelectAll bool // select: "*"
	Emit      Text
	Late      *LateSpec
	To        []Text
}

// WindowSpec is a step's `window:`.
type WindowSpec struct {
	Pos             Pos
	Type            Text // tumbling, hopping
	Size            Span
	Advance         Span
	Offset          Span
	TimeZone        Text // IANA name; aligns windows of a day or longer to local midnight
	AllowedLateness Span
}

// LateSpec is a step's `late:`: a sink, or the policy drop.
type LateSpec struct {
	Pos    Pos
	To     Text
	Policy Text
}

// SinkSpec is one entry of `sinks:`.
type SinkSpec struct {
	Name            Text
	Topic           Text
	Format          Text
	Key             Text // an expression; empty: the row's key
	KeyWithWindow   bool
	Mode            Text // append (default), upsert
	Headers         []Named
	TimestampFormat Text // epoch_ms, rfc3339; empty: as the field declares
}

// ErrorSpec is the top-level `errors:`. Each policy is fail, skip or dead_letter.
type ErrorSpec struct {
	Deserialization, Processing, Production Text
	DeadLetterTopic                         Text
}

// Severity grades a Finding.
type Severity uint8

// The severities. Only errors keep a job from starting.
const (
	Error Severity = iota
	Warning
	Note
)

// Finding is one thing that is wrong, or worth knowing, about a configuration.
type Finding struct {
	Severity Severity
	Code     string // MR1103 for errors, W… for warnings, N… for notes; stable
	Pos      Pos
	Len      int // length of the underlined part; 0 when unknown
	Message  string
	Hint     string // what to do, or the nearest known name
}
