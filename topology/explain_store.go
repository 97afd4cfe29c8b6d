package topology

import "millrace/record"

// storeInWords estimates what a row takes, in bytes: text is taken for typicalText long, everything else is counted.
type storeInWords struct {
	Name        string `json:"name"`
	Changelog   string `json:"changelog"`
	Fingerprint string `json:"fingerprint"`
	Rows        string `json:"rows"` // what there is one row for
	KeyBytes    int    `json:"key_bytes"`
	StateBytes  int    `json:"state_bytes"`
	// FullBytes is the state once its collections have reached their limits; as StateBytes where nothing collects.
	FullBytes int `json:"full_state_bytes"`
}

const (
	typicalText   = 16 // of a string or another value of changing length
	typicalNumber = 8
	timeDigits    = 13
	boolText      = 5
)

func (p *Plan) storeWords(a *aggregatePlan) *storeInWords {
	name := a.step.spec.Name.Value
	s := &storeInWords{Name: name, Changelog: p.ChangelogTopic(name), Fingerprint: p.Fingerprint(name), Rows: "group"}
	switch {
	case a.slices:
		s.Rows = "group and slice of " + ShortDuration(millis64(a.windows.Slice()))
	case a.windows != nil:
		s.Rows = "group and window"
	}
	for i, f := range a.key.fields {
		if i > 0 {
			s.KeyBytes++ // the separator
		}
		s.KeyBytes += textWidth(f.Type)
	}
	fixed := len(a.set.Init(nil)) + rowTrailer
	s.StateBytes, s.FullBytes = fixed, fixed
	for _, item := range a.items {
		first, full := textWidth(item.Arg), 0
		switch item.Call.Name {
		case "min", "max", "first", "last":
			if numeric(item.Arg) && item.Call.Name[0] == 'm' {
				first = 0 // counted as fixed
			}
			full = first
		case "fold":
			full = first
		case "collect_list", "collect_set":
			full = first * item.Call.Limit
		case "approx_distinct":
			first, full = typicalNumber, 1<<item.Call.Precision
		default:
			continue
		}
		s.StateBytes += first
		s.FullBytes += full
	}
	return s
}

func numeric(t record.Type) bool {
	return !t.Any && (t.Kind == record.Long || t.Kind == record.Double || t.Kind == record.Decimal || t.Kind == record.Time || t.Kind == record.Duration)
}

// textWidth is the length that a value of a type typically has as text.
func textWidth(t record.Type) int {
	switch {
	case t.Any:
		return typicalText
	case t.Kind == record.Time:
		return timeDigits
	case t.Kind == record.Bool:
		return boolText
	case numeric(t):
		return typicalNumber
	}
	return typicalText
}
