package cli

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"time"

	"millrace/config"
	"millrace/driver"
	"millrace/record"
)

// failure is one thing that a test finds wrong.
type failure struct {
	Pos       string   `json:"at"` // of the expectation, as file:line:column
	Message   string   `json:"message"`
	Want      string   `json:"want,omitempty"` // the whole record, where one is compared
	Got       string   `json:"got,omitempty"`
	Watermark string   `json:"watermark,omitempty"` // of the task that produced what came instead
	Details   []string `json:"details,omitempty"`
}

// topicCheck compares what a topic holds with what a test waits for.
type topicCheck struct {
	name   string            // of the sink, for messages
	format string            // of the values
	topics map[string]string // of the sources, by name: dead letters carry the topic
}

// anyFormat is that of dead letters, which come from all sources: text, or what is the same as JSON.
const anyFormat = "any"

// match finds the expected records in their order within each partition. Which partition holds which is left open where
// the test does not say, so all ways that are still possible are followed side by side.
func (c topicCheck) match(expected []config.ExpectedRecord, outputs []driver.Output) []failure {
	partitions := map[int32][]driver.Output{}
	var numbers []int32
	for _, o := range outputs {
		if partitions[o.Partition] == nil {
			numbers = append(numbers, o.Partition)
		}
		partitions[o.Partition] = append(partitions[o.Partition], o)
	}
	ways := []positions{make(positions, len(numbers))}
	for i := range expected {
		e := &expected[i]
		var next []positions
		seen := map[string]bool{}
		for _, w := range ways {
			for n, p := range numbers {
				if w[n] == len(partitions[p]) {
					continue
				}
				if _, same := c.compare(e, partitions[p][w[n]]); !same {
					continue
				}
				further := slices.Clone(w)
				further[n]++
				if id := fmt.Sprint(further); !seen[id] {
					seen[id] = true
					next = append(next, further)
				}
			}
		}
		if len(next) == 0 {
			var heads []driver.Output
			for n, p := range numbers {
				if at := ways[0][n]; at < len(partitions[p]) {
					heads = append(heads, partitions[p][at])
				}
			}
			return []failure{c.missing(i, e, heads)}
		}
		ways = next
	}
	return c.rest(ways, numbers, partitions, len(expected))
}

// positions says how far each partition has been matched.
type positions []int

// missing explains that record i was not found, by the record that came in its place.
func (c topicCheck) missing(i int, e *config.ExpectedRecord, heads []driver.Output) failure {
	f := failure{Pos: e.Pos.String(), Message: fmt.Sprintf("%s[%d]: want a record, got no more", c.name, i), Want: showExpected(e)}
	if len(heads) == 0 {
		return f
	}
	at := max(slices.IndexFunc(heads, func(o driver.Output) bool { return !e.Key.Set || sameKeyText(e.Key, o.Key) }), 0)
	got := heads[at]
	d, _ := c.compare(e, got)
	f.Message = fmt.Sprintf("%s[%d]%s: want %s, got %s", c.name, i, d.path, d.want, d.got)
	f.Got = showOutput(got)
	f.Watermark = showWatermark(got.Watermark)
	return f
}

// rest reports what came beyond the expected records.
func (c topicCheck) rest(ways []positions, numbers []int32, partitions map[int32][]driver.Output, expected int) []failure {
	var first []driver.Output
	for _, w := range ways {
		var rest []driver.Output
		for n, p := range numbers {
			rest = append(rest, partitions[p][w[n]:]...)
		}
		if len(rest) == 0 {
			return nil
		}
		if first == nil {
			first = rest
		}
	}
	f := failure{Message: fmt.Sprintf("%s: %s more than the test expects", c.name, plural(len(first), "record")),
		Got: showOutput(first[0]), Watermark: showWatermark(first[0].Watermark)}
	if expected == 0 {
		f.Message = fmt.Sprintf("%s: %s, and the test expects none", c.name, plural(len(first), "record"))
	}
	for _, o := range first[1:min(len(first), 10)] {
		f.Details = append(f.Details, "+ "+showOutput(o))
	}
	return []failure{f}
}

// compare tells whether a record is the expected one, and if not where they part first.
func (c topicCheck) compare(e *config.ExpectedRecord, o driver.Output) (difference, bool) {
	if e.Key.Set && !sameKeyText(e.Key, o.Key) {
		return difference{".key", showDatum(e.Key), showKey(o.Key)}, false
	}
	if e.Partition >= 0 && e.Partition != o.Partition {
		return difference{".partition", fmt.Sprint(e.Partition), fmt.Sprint(o.Partition)}, false
	}
	if d, same := c.compareValue(e, o.Value); !same {
		d.path = ".value" + d.path
		return d, false
	}
	if e.HasTimestamp && e.Timestamp != o.Timestamp {
		return difference{".timestamp", fmt.Sprint(e.Timestamp), fmt.Sprint(o.Timestamp)}, false
	}
	for _, h := range e.Headers {
		if d, same := compareHeader(h, o.Headers); !same {
			return d, false
		}
	}
	if e.Source.Value != "" {
		topic, found := header(o.Headers, headerTopic)
		if want := c.topics[e.Source.Value]; !found || string(topic) != want {
			return difference{".source", e.Source.Value + " (topic " + want + ")", "topic " + string(topic)}, false
		}
	}
	if e.Reason.Value != "" {
		if reason, _ := header(o.Headers, headerReason); string(reason) != e.Reason.Value {
			message, _ := header(o.Headers, headerError)
			return difference{".reason", e.Reason.Value, fmt.Sprintf("%s (%s)", reason, message)}, false
		}
	}
	return difference{}, true
}

func (c topicCheck) compareValue(e *config.ExpectedRecord, got []byte) (difference, bool) {
	switch {
	case e.Tombstone:
		return difference{"", "a tombstone", showValue(got)}, got == nil
	case !e.Value.Set:
		return difference{}, true
	case got == nil:
		return difference{"", string(e.Value.JSON), "a tombstone"}, false
	case e.Value.Raw:
		return difference{"", strconv.Quote(e.Value.Text), strconv.Quote(string(got))}, e.Value.Text == string(got)
	case c.format == anyFormat && e.Value.Text != "" && e.Value.Text == string(got):
		return difference{}, true
	case c.format == "" || c.format == "json" || c.format == anyFormat:
		return sameJSON(e.Value.JSON, got, e.Subset)
	case c.format == "long" && len(got) == 8:
		n := strconv.FormatInt(int64(binary.BigEndian.Uint64(got)), 10)
		return difference{"", e.Value.Text, n}, sameNumber(e.Value.Text, n)
	}
	return difference{"", strconv.Quote(e.Value.Text), strconv.Quote(string(got))}, e.Value.Text == string(got)
}

func compareHeader(want config.TestHeader, headers []record.Header) (difference, bool) {
	name := want.Name.Value
	got, found := header(headers, name)
	text := nothing
	if found {
		text = showKey(got)
	}
	d := difference{".headers." + name, showDatum(want.Value), text}
	if !found || want.Value.Null != (got == nil) {
		return d, false
	}
	return d, want.Value.Null || string(got) == want.Value.Text
}

// header returns the last header of a name, which is the one that counts in Kafka.
func header(headers []record.Header, name string) (value []byte, found bool) {
	for _, h := range headers {
		if string(h.Key) == name {
			value, found = h.Value, true
		}
	}
	return value, found
}

// sameKeyText compares a key with its text; 8 bytes may be a key of the format long that came through as it was.
func sameKeyText(want config.Datum, got []byte) bool {
	if want.Null || got == nil {
		return want.Null && got == nil
	}
	if string(got) == want.Text {
		return true
	}
	if n, err := strconv.ParseInt(want.Text, 10, 64); err == nil && len(got) == 8 {
		return binary.BigEndian.Uint64(got) == uint64(n)
	}
	if len(want.JSON) > 0 && (want.JSON[0] == '{' || want.JSON[0] == '[') {
		_, same := sameJSON(want.JSON, got, false)
		return same
	}
	return false
}

func showDatum(d config.Datum) string {
	if d.Null {
		return "null"
	}
	return string(d.JSON)
}

func showKey(key []byte) string {
	if key == nil {
		return "null"
	}
	return strconv.Quote(string(key))
}

func showValue(value []byte) string {
	if value == nil {
		return "a tombstone"
	}
	if _, err := parseJSON(value); err == nil {
		return string(value)
	}
	return strconv.Quote(string(value))
}

func showExpected(e *config.ExpectedRecord) string {
	text := ""
	if e.Key.Set {
		text = "key " + showDatum(e.Key) + "  "
	}
	switch {
	case e.Tombstone:
		return text + "a tombstone"
	case e.Value.Raw:
		return text + strconv.Quote(e.Value.Text)
	case !e.Value.Set:
		return text + "any value"
	}
	return text + string(e.Value.JSON)
}

func showOutput(o driver.Output) string {
	return fmt.Sprintf("key %s  %s", showKey(o.Key), showValue(o.Value))
}

func showWatermark(ms int64) string {
	if ms == record.NoTime {
		return ""
	}
	return fmt.Sprintf("%s (%d)", time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z"), ms)
}
