package record

import "math"

// Kind says which of a Value's parts is set.
type Kind uint8

// The kinds of a Value. Missing is a field that the record does not have; Null is one that it has as null.
const (
	Missing Kind = iota
	Null
	Bool
	Long
	Double
	Decimal
	String
	Bytes
	Time     // Num: milliseconds since the epoch
	Duration // Num: nanoseconds
	List     // Raw: JSON text
	Map      // Raw: JSON text
)

var kindNames = [...]string{"missing", "null", "bool", "long", "double", "decimal", "string", "bytes", "time", "duration", "list", "map"}

func (k Kind) String() string { return kindNames[k] }

// Value is one field's value, without a heap object of its own. Raw aliases the buffer that the value was decoded
// from: whoever keeps a Value beyond the batch copies Raw.
type Value struct {
	Kind  Kind
	Scale int32  // Decimal: digits after the point
	Num   int64  // Bool 0/1, Long, Double's bits, Decimal's coefficient, Time in ms, Duration in ns
	Raw   []byte // String, Bytes; List and Map as JSON text; a Decimal whose coefficient exceeds int64 as its digits
}

// Constructors, one a kind.
func NullValue() Value             { return Value{Kind: Null} }
func LongValue(n int64) Value      { return Value{Kind: Long, Num: n} }
func DoubleValue(f float64) Value  { return Value{Kind: Double, Num: int64(math.Float64bits(f))} }
func StringValue(b []byte) Value   { return Value{Kind: String, Raw: b} }
func BytesValue(b []byte) Value    { return Value{Kind: Bytes, Raw: b} }
func TimeValue(ms int64) Value     { return Value{Kind: Time, Num: ms} }
func DurationValue(ns int64) Value { return Value{Kind: Duration, Num: ns} }

// BoolValue returns b as a Value.
func BoolValue(b bool) Value {
	if b {
		return Value{Kind: Bool, Num: 1}
	}
	return Value{Kind: Bool}
}

// Float returns a Double's number.
func (v Value) Float() float64 { return math.Float64frombits(uint64(v.Num)) }

// IsNull tells whether there is no value: null, or no such field.
func (v Value) IsNull() bool { return v.Kind <= Null }

// TimeForm is how a time is written where it leaves as JSON.
type TimeForm uint8

// The forms of a time: milliseconds since the epoch, or RFC 3339 text.
const (
	EpochMillis TimeForm = iota
	RFC3339
)

// Type is a field's declared type. Any says that nothing is known of it before the record is there.
type Type struct {
	Kind     Kind
	Any      bool
	Nullable bool
	Form     TimeForm // of Time
}

func (t Type) String() string {
	if t.Any {
		return "any"
	}
	s := t.Kind.String()
	switch {
	case t.Kind == Bool:
		s = "boolean"
	case t.Kind == Time && t.Form == EpochMillis:
		s = "timestamp_ms"
	case t.Kind == Time:
		s = "timestamp"
	}
	if t.Nullable {
		s += "|null"
	}
	return s
}

// Field is a name with its type.
type Field struct {
	Name string
	Type Type
}
