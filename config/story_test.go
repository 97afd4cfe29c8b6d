package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"millrace/record"
	"millrace/topology"
)

const stories = `tests:
  - name: everything
    partitions: 4
    input:
      - { source: clicks, key: k, value: { b: 1.0, a: [1, 0x1F, null, true, "x"], "n": 9007199254740993 }, headers: { h: v, n: null }, timestamp: 1970-01-01T00:00:01.5Z, partition: 3 }
      - { source: clicks, value: null }
      - { source: clicks, raw: '{', timestamp: 250 }
      - { advance_wall_clock: 30s }
      - { advance_watermark: { source: clicks, to: 120000 } }
      - { restart: true }
      - { rebalance: true }
      - { commit: true }
    expect:
      out:
        - { key: 7, value: { n: 1 }, match: subset, headers: { h: v }, timestamp: 5, partition: 0 }
        - { key: k, tombstone: true }
      other: []
    expect_no_output: [late]
    expect_dead_letters: [{ raw: '{', source: clicks, reason: deserialization }]
    expect_counts: { counts: { late: 1, windows_closed: 0 } }
`

func datum(text, json string) Datum { return Datum{Set: true, Text: text, JSON: []byte(json)} }

func TestStoriesAreDecoded(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "job_test.yaml", stories)
	got, list := LoadTests([]string{"job_test.yaml"})
	if len(list) > 0 {
		t.Fatal(render(t, list, Text))
	}
	null := Datum{Set: true, Null: true, Text: "null", JSON: []byte("null")}
	brace := Datum{Set: true, Raw: true, Text: "{", JSON: []byte(`"{"`)}
	row := Datum{Set: true, JSON: []byte(`{"b":1.0,"a":[1,31,null,true,"x"],"n":9007199254740993}`)}
	want := []Test{{
		Name: text("everything"), Partitions: 4,
		Input: []TestStep{
			{Record: TestRecord{Source: text("clicks"), Key: datum("k", `"k"`), Value: row,
				Headers:   []TestHeader{{text("h"), datum("v", `"v"`)}, {text("n"), null}},
				Timestamp: 1500, HasTimestamp: true, Partition: 3}},
			{Record: TestRecord{Source: text("clicks"), Value: null, Partition: -1}},
			{Record: TestRecord{Source: text("clicks"), Value: brace, Timestamp: 250, HasTimestamp: true, Partition: -1}},
			{Kind: StepAdvanceWallClock, Advance: span(30 * time.Second), Record: TestRecord{Partition: -1}},
			{Kind: StepAdvanceWatermark, Source: text("clicks"), To: 120000, Record: TestRecord{Partition: -1}},
			{Kind: StepRestart, Record: TestRecord{Partition: -1}},
			{Kind: StepRebalance, Record: TestRecord{Partition: -1}},
			{Kind: StepCommit, Record: TestRecord{Partition: -1}},
		},
		Expect: []SinkExpectation{
			{Sink: text("out"), Records: []ExpectedRecord{
				{Key: datum("7", "7"), Value: Datum{Set: true, JSON: []byte(`{"n":1}`)}, Subset: true,
					Headers: []TestHeader{{text("h"), datum("v", `"v"`)}}, Timestamp: 5, HasTimestamp: true, Partition: 0},
				{Key: datum("k", `"k"`), Tombstone: true, Partition: -1},
			}},
			{Sink: text("other")},
		},
		ExpectNoOutput:    []topology.Text{text("late")},
		ExpectDeadLetters: []ExpectedRecord{{Value: brace, Partition: -1, Source: text("clicks"), Reason: text("deserialization")}},
		DeadLetters:       true,
		ExpectCounts:      []CountExpectation{{Where: text("counts"), Outcome: record.Late, N: 1}, {Where: text("counts"), Outcome: record.WindowClosed}},
	}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(topology.Pos{})); diff != "" {
		t.Errorf("tests (-want +got):\n%s", diff)
	}
	if got[0].Input[4].Pos.Line != 9 || got[0].ExpectCounts[0].Pos.Col != 38 {
		t.Errorf("places %v and %v", got[0].Input[4].Pos, got[0].ExpectCounts[0].Pos)
	}
}

func TestAFileOfTestsHoldsNothingElse(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "a_test.yaml", "x-row: &row { a: 1 }\ntopology: {}\n")
	_, list := LoadTests([]string{"a_test.yaml"})
	var codes []string
	for _, f := range list {
		codes = append(codes, f.Code)
	}
	if diff := cmp.Diff([]string{codeMissing, codeUnknownKey}, codes); diff != "" {
		t.Error(diff)
	}
}

func TestEveryOutcomeHasAWord(t *testing.T) {
	if len(outcomeWords) != len(outcomeOrder) {
		t.Fatalf("%d words in order, %d in all", len(outcomeOrder), len(outcomeWords))
	}
	for i, word := range outcomeOrder {
		if outcomeWords[word] != record.Outcome(i) {
			t.Errorf("%s stands for outcome %d, want %d", word, outcomeWords[word], i)
		}
	}
}
