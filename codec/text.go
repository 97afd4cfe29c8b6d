package codec

import (
	"encoding/binary"
	"strconv"

	"millrace/record"
)

// AppendText appends a scalar as plain text, the form in which values become record keys: a string and bytes as they are,
// numbers in decimal (doubles at their shortest), true or false, a time as milliseconds since the epoch, a duration as
// 1m30s, a list or map as its JSON text. Null and Missing append nothing.
func AppendText(dst []byte, v record.Value) []byte {
	switch v.Kind {
	case record.Missing, record.Null:
		return dst
	case record.String, record.Bytes:
		return append(dst, v.Raw...)
	case record.Double:
		return record.AppendDouble(dst, v.Float()) // not as JSON: a key must tell NaN and the infinities apart
	case record.Duration:
		return appendDuration(dst, v.Num)
	}
	return AppendJSON(dst, v, record.EpochMillis)
}

// AppendLong appends a Long or a Time as the format long has it: 8 bytes, big endian.
func AppendLong(dst []byte, v record.Value) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(v.Num))
}

// ScalarField names the one field of a record in the formats string, long and bytes.
const ScalarField = "value"

// ScalarDecoder decodes the formats string, long and bytes, whose whole record is one value. The planned fields can only
// be that value, so that it fills all of them.
type ScalarDecoder struct {
	kind   record.Kind
	fields int
}

// NewStringDecoder returns a decoder that takes a record's bytes as text, unchecked.
func NewStringDecoder(fields []Field) *ScalarDecoder {
	return &ScalarDecoder{record.String, len(fields)}
}

// NewLongDecoder returns a decoder of 8 bytes, big endian, as Kafka's own LongSerializer writes them.
func NewLongDecoder(fields []Field) *ScalarDecoder { return &ScalarDecoder{record.Long, len(fields)} }

// NewBytesDecoder returns a decoder that leaves a record's bytes as they are.
func NewBytesDecoder(fields []Field) *ScalarDecoder { return &ScalarDecoder{record.Bytes, len(fields)} }

// Decode fills into for the planned fields; into aliases src. The only error is a *TypeError, for a long that is not
// 8 bytes long.
func (d *ScalarDecoder) Decode(src []byte, into []record.Value) error {
	v := record.Value{Kind: d.kind, Raw: src}
	if d.kind == record.Long {
		if len(src) != 8 {
			return &TypeError{
				Path: []string{ScalarField}, Want: record.Type{Kind: record.Long},
				Got: strconv.Itoa(len(src)) + " bytes instead of 8",
			}
		}
		v = record.LongValue(int64(binary.BigEndian.Uint64(src)))
	}
	for i := range into[:d.fields] {
		into[i] = v
	}
	return nil
}
