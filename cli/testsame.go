package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"millrace/record"
)

// difference is where two values part, and what is there.
type difference struct {
	path      string // as in .value.revision
	want, got string
}

const nothing = "nothing"

// sameJSON compares two values by what they mean: the order of keys does not count, and numbers are compared as numbers,
// to their last digit. As a subset, got may have more fields at every depth.
func sameJSON(want, got []byte, subset bool) (difference, bool) {
	w, err := parseJSON(want)
	if err != nil {
		return difference{want: string(want), got: "a test that holds no JSON: " + err.Error()}, false
	}
	g, err := parseJSON(got)
	if err != nil {
		return difference{want: string(want), got: fmt.Sprintf("%q, which is no JSON", got)}, false
	}
	return compareJSON(w, g, subset)
}

func parseJSON(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the value")
	}
	return v, nil
}

func compareJSON(want, got any, subset bool) (difference, bool) {
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			return compareObjects(w, g, subset)
		}
	case []any:
		if g, ok := got.([]any); ok && len(w) == len(g) {
			for i := range w {
				if d, same := compareJSON(w[i], g[i], subset); !same {
					d.path = fmt.Sprintf("[%d]%s", i, d.path)
					return d, false
				}
			}
			return difference{}, true
		}
	case json.Number:
		if g, ok := got.(json.Number); ok && sameNumber(w.String(), g.String()) {
			return difference{}, true
		}
	default:
		if want == got {
			return difference{}, true
		}
	}
	return difference{want: showJSON(want), got: showJSON(got)}, false
}

func compareObjects(want, got map[string]any, subset bool) (difference, bool) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		g, found := got[name]
		if !found {
			return difference{"." + name, showJSON(want[name]), nothing}, false
		}
		if d, same := compareJSON(want[name], g, subset); !same {
			d.path = "." + name + d.path
			return d, false
		}
	}
	if subset {
		return difference{}, true
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, found := want[name]; !found {
			return difference{"." + name, nothing, showJSON(got[name])}, false
		}
	}
	return difference{}, true
}

// sameNumber compares the numbers that two texts name: 1.0 is 1, and a long beyond 2^53 keeps its last digit.
func sameNumber(a, b string) bool {
	x, errX := record.ParseDecimal([]byte(a))
	y, errY := record.ParseDecimal([]byte(b))
	if errX != nil || errY != nil {
		return a == b
	}
	return record.CompareDecimal(x, y) == 0
}

// showJSON writes a parsed value; everything that was parsed can be written.
func showJSON(v any) string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text.Bytes()))
}
