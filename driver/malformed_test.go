package driver

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"millrace/record"
	"millrace/topology"
)

// spoil damages a document in up to three places, or leaves it whole.
func spoil(r *rand.Rand, doc string) []byte {
	const bytes = "{}[]\":,\\ \n0123456789.eE+-truefalsnu\x00\x1f\x80\xc3\xff"
	b := []byte(doc)
	for range r.IntN(4) {
		if len(b) == 0 {
			return nil // as a tombstone comes
		}
		at, c := r.IntN(len(b)), bytes[r.IntN(len(bytes))]
		switch r.IntN(4) {
		case 0:
			b[at] = c
		case 1:
			b = append(b[:at:at], append([]byte{c}, b[at:]...)...)
		case 2:
			b = append(b[:at:at], b[at+1:]...)
		case 3:
			b = b[:at]
		}
	}
	return b
}

// strictJob sums amounts by the event time that a record itself says, and sends what it cannot use to the dead letters.
func strictJob() *topology.Spec {
	spec := countingJob()
	source, step := &spec.Sources[0], &spec.Steps[0]
	field := func(name string, kind record.Kind) topology.FieldSpec {
		return topology.FieldSpec{Name: text(name), Type: record.Type{Kind: kind, Nullable: true}}
	}
	source.Format, source.Timestamp, source.InvalidTimestamp = text("json"), text("value.at"), text("dead_letter")
	source.Fields = []topology.FieldSpec{field("amount", record.Long), field("at", record.Long), field("user", record.String)}
	source.Key = topology.Text{} // the user may be spoilt: the step repartitions
	source.Watermark.MaxOutOfOrderness = topology.Span{Value: 5 * time.Second, Set: true}
	source.Watermark.MaxFuture = topology.Span{Value: 5 * time.Second, Set: true} // a spoilt time moves nothing that counts
	step.Where, step.GroupBy = text("value.amount > 2"), []topology.Named{{Name: text("user"), Expr: text("value.user")}}
	step.Aggregate = append(step.Aggregate, topology.Named{Name: text("total"), Expr: text("sum(value.amount)")})
	spec.Errors = topology.ErrorSpec{Deserialization: text("dead_letter"), Processing: text("dead_letter"), Production: text("dead_letter"), DeadLetterTopic: text("dead")}
	return spec
}

// Whatever a producer sends: nothing stops the job, every record is counted once, and what was refused is in the
// dead-letter topic byte by byte, with a reason.
func TestTenThousandMalformedRecordsAreAccountedFor(t *testing.T) {
	const records = 10_000
	r := rand.New(rand.NewPCG(7, 7))
	d := newDriver(t, strictJob(), 2)
	sent := map[string]int{}
	for i := range records {
		value := spoil(r, fmt.Sprintf(`{"user":"u%d","amount":%d,"at":%d}`, r.IntN(5), r.IntN(9), Start.UnixMilli()+int64(i/10)))
		sent[string(value)]++
		must(t, d.Pipe("in", int32(i%2), record.Record{Key: []byte("k"), Value: value, Timestamp: int64(i)}))
		if i%100 == 0 {
			must(t, d.Commit())
		}
	}
	must(t, d.AdvanceWatermark("in", Start.Add(time.Hour)), d.Commit())

	counted := map[record.Outcome]int64{}
	for _, tally := range d.Tallies() {
		counted[tally.What] += tally.N
	}
	applied := int64(0)
	for _, o := range d.Read("out") {
		var row struct{ N int64 }
		must(t, json.Unmarshal(o.Value, &row))
		applied += row.N
	}
	if sum := applied + counted[record.Late] + counted[record.Filtered] + counted[record.Dropped] + counted[record.DeadLettered]; sum != records {
		t.Errorf("%d of %d records are accounted for: %d applied, %v", sum, records, applied, counted)
	}
	for _, what := range []record.Outcome{record.Late, record.Filtered, record.Dropped, record.DeadLettered} {
		if counted[what] < 10 {
			t.Errorf("outcome %d happened %d times: the test does not show what becomes of it", what, counted[what])
		}
	}
	dead := d.DeadLetters()
	if int64(len(dead)) != counted[record.DeadLettered] || applied < records/10 {
		t.Errorf("%d dead letters, %d are counted; %d records were applied", len(dead), counted[record.DeadLettered], applied)
	}
	for _, o := range dead {
		if sent[string(o.Value)]--; sent[string(o.Value)] < 0 || len(o.Headers) == 0 {
			t.Fatalf("%q with %d headers was never sent so often", o.Value, len(o.Headers))
		}
	}
}
