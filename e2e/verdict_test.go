package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"millrace/devbroker"
)

// The oracle is worth what it finds. This test makes the exact output of each job without a broker, spoils it in every
// way that a broken protocol spoils it, and expects each to be found.

func exactOutput(j job, all []click) output {
	var o output
	late := lateBehindOwn(all)
	by := byUser
	field := "user"
	if j.name == shuffledJob.name {
		by, field = byAd, "ad"
	}
	for _, c := range all {
		if j.stateful && late[c.N] {
			o.late = append(o.late, c.record())
		}
		if !j.stateful && c.Cents >= 50_000 {
			o.out = append(o.out, devbroker.Record{Partition: c.partition, Key: []byte(c.User), Value: fmt.Appendf(nil, `{"n":%d,"user":%q,"amount":%d.%02d}`, c.N, c.User, c.Cents/100, c.Cents%100)})
		}
	}
	if !j.stateful {
		return o
	}
	sums := totals(all, by, late, j.name == changesJob.name)
	keys := slices.SortedFunc(maps.Keys(sums), func(a, b windowKey) int {
		if a.start != b.start {
			return int((a.start - b.start) / minute)
		}
		return strings.Compare(a.key, b.key)
	})
	for _, k := range keys {
		if t := sums[k]; j.name == changesJob.name && t.count > 1 {
			o.out = append(o.out, row(field, k, total{1, 1}))
		}
		o.out = append(o.out, row(field, k, sums[k]))
	}
	return o
}

func row(field string, k windowKey, t total) devbroker.Record {
	return devbroker.Record{Key: []byte(k.key), Value: fmt.Appendf(nil, `{%q:%q,"window_start":%d,"window_end":%d,"count":%d,"amount":%d.%02d}`,
		field, k.key, k.start, k.start+minute, t.count, t.cents/100, t.cents%100)}
}

func TestOracleFindsWhatIsWrong(t *testing.T) {
	const in = 7 // somewhere in the middle
	twice := func(list []devbroker.Record) []devbroker.Record {
		return slices.Insert(slices.Clone(list), in, list[in])
	}
	without := func(list []devbroker.Record) []devbroker.Record { return list[:len(list)-1] }
	changed := func(list []devbroker.Record, from, to string) []devbroker.Record {
		list = slices.Clone(list)
		for i := len(list) - 1; i >= 0; i-- {
			if text := string(list[i].Value); strings.Contains(text, from) {
				list[i].Value = []byte(strings.Replace(text, from, to, 1))
				return list
			}
		}
		t.Fatalf("nothing has %q", from)
		return nil
	}
	spoil := map[string]func(o output) output{
		"a result twice":   func(o output) output { return output{twice(o.out), o.late} },
		"a result missing": func(o output) output { return output{without(o.out), o.late} },
		"a cent too much":  func(o output) output { return output{changed(o.out, `0}`, `1}`), o.late} },
		"the last result first": func(o output) output {
			return output{slices.Insert(slices.Clone(o.out), 0, o.out[len(o.out)-1]), o.late}
		},
		"nothing at all": func(output) output { return output{} },
	}
	stateful := map[string]func(o output) output{
		"a count too high":       func(o output) output { return output{changed(o.out, `"count":1,`, `"count":2,`), o.late} },
		"a late record twice":    func(o output) output { return output{o.out, append(slices.Clone(o.late), o.late[0])} },
		"a late record missing":  func(o output) output { return output{o.out, o.late[1:]} },
		"a late record invented": func(o output) output { return output{o.out, append(slices.Clone(o.late), o.out[0])} },
	}
	for _, j := range jobs {
		g := newGenerator(seed(), 1, 120)
		g.take(200)
		g.finish()
		o := exactOutput(j, g.all)
		if v := j.verify(1, g.all, o); !v.exact() {
			t.Errorf("%s: the exact output is refused: %s", j.name, v)
		}
		ways := maps.Clone(spoil)
		if j.stateful {
			maps.Copy(ways, stateful)
		}
		for name, way := range ways {
			if v := j.verify(1, g.all, way(o)); v.exact() {
				t.Errorf("%s: %s is not found", j.name, name)
			}
		}
	}
}
