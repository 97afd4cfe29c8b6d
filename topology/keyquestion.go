package topology

import "millrace/record"

// Matches tells whether a record's key is the group's key. An error says that the record does not tell: it has no such
// value, or cannot be read.
func (q *KeyQuestion) Matches(f Formats, r *record.Record) (bool, error) {
	if r.Value == nil {
		return false, errNoGroup // no step ever sees it
	}
	layout := q.port.in.layout
	in := &Instance{env: Env{Formats: f}}
	d, err := in.decoder(q.port.in.raw.spec.Format.Value, layout)
	if err != nil {
		return false, err
	}
	row := record.Row{Key: r.Key, Value: r.Value, Headers: r.Headers, Time: r.Timestamp, Fields: make([]record.Value, len(layout.Paths()))}
	if d != nil {
		if err := d.Decode(r.Value, row.Fields); err != nil {
			return false, err
		}
	}
	v, err := q.port.group[0].Bind()(&row)
	if err != nil {
		return false, err
	}
	if v.IsNull() {
		return false, errNoGroup
	}
	return sameKey(q.port.in.key, r.Key, appendText(nil, v)), nil
}
