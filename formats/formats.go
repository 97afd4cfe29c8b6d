// Package formats finds the codecs that a plan names.
package formats

import (
	"fmt"
	"slices"

	"millrace/codec"
	"millrace/record"
	"millrace/topology"
)

// ByName makes the codecs of the formats: json, which is also what an empty name means, string, long and bytes.
type ByName struct{}

// Decoder returns the decoder of these fields. Formats of one value have no field but the value itself.
func (ByName) Decoder(format string, paths []topology.FieldPath) (topology.Decoder, error) {
	fields := make([]codec.Field, len(paths))
	for i, p := range paths {
		fields[i] = codec.Field{Path: p.Segments, Type: p.Type}
	}
	if format == "" || format == "json" {
		return codec.NewJSONDecoder(fields), nil
	}
	for _, f := range fields {
		if len(f.Path) > 0 && !slices.Equal(f.Path, []string{codec.ScalarField}) {
			return nil, fmt.Errorf("format %s has one value and no field %v", format, f.Path)
		}
	}
	switch format {
	case "string":
		return codec.NewStringDecoder(fields), nil
	case "long":
		return codec.NewLongDecoder(fields), nil
	case "bytes":
		return codec.NewBytesDecoder(fields), nil
	}
	return nil, unknownFormat(format)
}

// Encoder returns the encoder of rows with these fields. string, long and bytes hold one value, so that a row must have
// just one field, of a type that the format can write for every record.
func (ByName) Encoder(format string, fields []record.Field) (topology.Encoder, error) {
	if format == "" || format == "json" {
		return codec.NewJSONEncoder(fields), nil
	}
	if len(fields) != 1 {
		return nil, fmt.Errorf("format %s holds one value, and the row has %d fields", format, len(fields))
	}
	field := fields[0]
	switch format {
	case "string":
		return textEncoder{field.Type.Form}, nil
	case "long":
		return longEncoder{}, mustBe(format, field, record.Long, record.Time)
	case "bytes":
		return textEncoder{}, mustBe(format, field, record.Bytes, record.String)
	}
	return nil, unknownFormat(format)
}

func unknownFormat(format string) error {
	return fmt.Errorf("format %q is not known: use json, string, long or bytes", format)
}

func mustBe(format string, field record.Field, kinds ...record.Kind) error {
	if !field.Type.Any && slices.Contains(kinds, field.Type.Kind) {
		return nil
	}
	return fmt.Errorf("format %s writes %s or %s, and field %s is %s", format, kinds[0], kinds[1], field.Name, field.Type)
}

// textEncoder writes the format string, and the format bytes, whose values are bytes already. A null value is a null in
// Kafka, too, as the serializers of Kafka's own clients have it; empty text is not.
type textEncoder struct{ form record.TimeForm }

func (e textEncoder) Append(dst []byte, values []record.Value) []byte {
	v := values[0]
	if v.IsNull() {
		return nil
	}
	if dst == nil {
		dst = []byte{}
	}
	if v.Kind == record.Time && e.form == record.RFC3339 {
		return codec.AppendRFC3339(dst, v.Num)
	}
	return codec.AppendText(dst, v)
}

// longEncoder writes the format long; a time is its milliseconds since the epoch. A null value is a null in Kafka, too.
type longEncoder struct{}

func (longEncoder) Append(dst []byte, values []record.Value) []byte {
	if values[0].IsNull() {
		return nil
	}
	return codec.AppendLong(dst, values[0])
}

var _ topology.Formats = ByName{}
