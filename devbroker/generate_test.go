package devbroker

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"millrace/record"
)

var clickFields = []record.Field{
	{Name: "ad_id", Type: record.Type{Kind: record.String}},
	{Name: "userId", Type: record.Type{Kind: record.Long}},
	{Name: "page_url", Type: record.Type{Kind: record.String}},
	{Name: "cost", Type: record.Type{Kind: record.Double}},
	{Name: "clicked_at", Type: record.Type{Kind: record.Time}},
	{Name: "seen", Type: record.Type{Kind: record.Time, Form: record.RFC3339}},
	{Name: "geo.country", Type: record.Type{Kind: record.String, Nullable: true}},
	{Name: "geo.exact", Type: record.Type{Kind: record.Bool}},
	{Name: "token", Type: record.Type{Kind: record.Bytes}},
	{Name: "tags", Type: record.Type{Kind: record.List}},
	{Name: "extra", Type: record.Type{Kind: record.Map}},
	{Name: "note \"quoted\"", Type: record.Type{Any: true}},
}

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func generator(t *testing.T, seed uint64, load Load) *Generator {
	t.Helper()
	load.Source = "clicks"
	g, err := NewGenerator(GeneratorOptions{Load: load, Topic: "clicks", Fields: clickFields, Key: "value.ad_id", Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func generate(g *Generator, n int) []Record {
	records := make([]Record, n)
	for i := range records {
		records[i] = g.Next(noon.Add(time.Duration(i) * time.Millisecond))
	}
	return records
}

func TestSameSeedGivesTheSameRecords(t *testing.T) {
	load := Load{LateShare: 0.1, LateBy: time.Minute, Duplicates: 0.1, Skew: 1.2}
	first := generate(generator(t, 1, load), 500)
	if diff := cmp.Diff(first, generate(generator(t, 1, load), 500)); diff != "" {
		t.Errorf("the same seed:\n%s", diff)
	}
	if cmp.Equal(first, generate(generator(t, 2, load), 500)) {
		t.Error("another seed gives the same records")
	}
}

func TestGeneratedRecordsFitTheDeclaration(t *testing.T) {
	type click struct {
		Ad      string          `json:"ad_id"`
		User    int64           `json:"userId"`
		Page    string          `json:"page_url"`
		Cost    json.Number     `json:"cost"`
		Clicked int64           `json:"clicked_at"`
		Seen    time.Time       `json:"seen"`
		Geo     json.RawMessage `json:"geo"`
		Token   []byte          `json:"token"`
		Tags    []string        `json:"tags"`
		Extra   map[string]any  `json:"extra"`
		Note    string          `json:"note \"quoted\""`
	}
	money := regexp.MustCompile(`^\d+\.\d\d$`)
	nulls := 0
	for i, r := range generate(generator(t, 1, Load{}), 1000) {
		var c click
		if err := json.Unmarshal(r.Value, &c); err != nil {
			t.Fatalf("%s: %v", r.Value, err)
		}
		want := noon.UnixMilli() + int64(i)
		if c.Clicked != want || c.Seen.UnixMilli() != want || r.Timestamp != want {
			t.Fatalf("record %d: times %d %v %d, want %d", i, c.Clicked, c.Seen, r.Timestamp, want)
		}
		if string(r.Key) != c.Ad || !strings.HasPrefix(c.Ad, "a") || c.User < 1 || c.User > distinctIDs ||
			!strings.HasPrefix(c.Page, "/") || !money.MatchString(c.Cost.String()) {
			t.Fatalf("key %s, value %s", r.Key, r.Value)
		}
		if strings.Contains(string(c.Geo), `"country":null`) {
			nulls++
		}
	}
	if nulls == 0 || nulls > 100 {
		t.Errorf("%d of 1000 nullable values are null", nulls)
	}
}

func TestLateAndDuplicateSharesAreKept(t *testing.T) {
	late, twice := 0, 0
	records := generate(generator(t, 1, Load{LateShare: 0.05, LateBy: 40 * time.Second, Duplicates: 0.1}), 20_000)
	for i, r := range records {
		if r.Timestamp < noon.UnixMilli()+int64(i)-30_000 {
			late++
		}
		if i > 0 && bytes.Equal(r.Value, records[i-1].Value) {
			twice++
		}
	}
	if share := float64(late) / float64(len(records)); math.Abs(share-0.05) > 0.01 {
		t.Errorf("%.3f of the records are late, want 0.05", share)
	}
	// Of 110 records 10 are repetitions.
	if share := float64(twice) / float64(len(records)); math.Abs(share-0.0909) > 0.01 {
		t.Errorf("%.3f of the records are repetitions, want 0.091", share)
	}
}

func TestSkewMakesAFewKeysHot(t *testing.T) {
	hottest := func(load Load) int {
		counts := make(map[string]int)
		most := 0
		for _, r := range generate(generator(t, 1, load), 10_000) {
			counts[string(r.Key)]++
			most = max(most, counts[string(r.Key)])
		}
		return most
	}
	if even, skewed := hottest(Load{}), hottest(Load{Skew: 1.2}); even > 100 || skewed < 1000 {
		t.Errorf("hottest key: %d of 10000 without skew, %d with", even, skewed)
	}
}

func TestGeneratorRefusesWhatItCannotMake(t *testing.T) {
	text := record.Type{Kind: record.String}
	for _, c := range []struct {
		fields []record.Field
		key    string
		want   string
	}{
		{nil, "", "declares no fields"},
		{[]record.Field{{Name: "a", Type: record.Type{Kind: record.Duration}}}, "", "field a"},
		{[]record.Field{{Name: "a", Type: text}}, "value.b", `key "b" is no declared field`},
		{[]record.Field{{Name: "a", Type: text}, {Name: "a.b", Type: text}}, "", "another field"},
		{[]record.Field{{Name: "a.b", Type: text}, {Name: "a", Type: text}}, "", "another field"},
		{[]record.Field{{Name: "a..b", Type: text}}, "", "empty"},
	} {
		_, err := NewGenerator(GeneratorOptions{Load: Load{Source: "s"}, Fields: c.fields, Key: c.key})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "source s") {
			t.Errorf("%v: %v; want an error with %q", c.fields, err, c.want)
		}
	}
}

func TestNamesAreTakenApart(t *testing.T) {
	for name, want := range map[string][]string{
		"ad_id": {"ad", "id"}, "adId": {"ad", "id"}, "pageURL": {"page", "url"}, "id": {"id"}, "_": {"value"},
		"ordered-at": {"ordered", "at"}, "größe": {"größe"},
	} {
		if diff := cmp.Diff(want, words(name)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestRunWritesUntilItIsStopped(t *testing.T) {
	b, c, ctx := bench(t, Options{Topics: map[string]int32{"clicks": 2}})
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	g := generator(t, 1, Load{PerSecond: 2000})
	go func() { ended <- g.Run(running, b.Addr()) }()
	if _, err := c.WaitCommitted(ctx, "clicks", func(r []Record) bool { return len(r) >= 50 }); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("stopped by its context: %v", err)
	}
}

func TestRunReportsWhatTheBrokerRefuses(t *testing.T) {
	b, _, ctx := bench(t, Options{Topics: map[string]int32{"clicks": 1}})
	const messageTooLarge = 10
	defer b.Fail(Produce, Always, messageTooLarge).Remove()
	if err := generator(t, 1, Load{PerSecond: 100}).Run(ctx, b.Addr()); err == nil || !strings.Contains(err.Error(), "source clicks") {
		t.Errorf("Run: %v", err)
	}
}
