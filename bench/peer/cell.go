package peer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Cell is one way to tune Kafka Streams.
type Cell struct {
	Name     string
	JVM      []string
	Settings map[string]string
}

// baseJVM gives every cell more memory than it needs; heap and collector can be changed by an option.
var baseJVM = map[string]string{"heap": "-Xmx2g", "collector": "-XX:+UseParallelGC"}

// option is a part of a cell's name.
type option struct {
	jvm      map[string]string
	settings map[string]string
	doc      string
}

var options = map[string]option{
	"default": {doc: "Kafka Streams as it comes, one thread, RocksDB, ParallelGC, heap of 2 GB, byte scanner"},
	"batches": {doc: "larger batches in both directions", settings: map[string]string{"producer.batch.size": "262144", "producer.buffer.memory": "67108864",
		"main.consumer.max.poll.records": "5000", "main.consumer.max.partition.fetch.bytes": "4194304", "buffered.records.per.partition": "10000"}},
	"cache64":       {doc: "record cache of 64 MB", settings: map[string]string{"statestore.cache.max.bytes": "67108864"}},
	"cache512":      {doc: "record cache of 512 MB", settings: map[string]string{"statestore.cache.max.bytes": "536870912"}},
	"memory":        {doc: "windows in memory instead of RocksDB", settings: map[string]string{"store": "memory"}},
	"transactional": {doc: "transactional state stores (KIP-892)", settings: map[string]string{"enable.transactional.statestores": "true"}},
	"threads2":      {doc: "two stream threads", settings: map[string]string{"num.stream.threads": "2"}},
	"streamsgroup":  {doc: "the broker-driven group protocol (KIP-1071)", settings: map[string]string{"group.protocol": "streams"}},
	"linger0":       {doc: "batches are sent at once", settings: map[string]string{"producer.linger.ms": "0"}},
	"jackson":       {doc: "Jackson's streaming parser instead of the byte scanner", settings: map[string]string{"json": "jackson"}},
	"g1":            {doc: "the G1 collector", jvm: map[string]string{"collector": "-XX:+UseG1GC"}},
	"heap4g":        {doc: "heap of 4 GB", jvm: map[string]string{"heap": "-Xmx4g"}},
}

// ParseCell reads a cell's name: options joined by "+".
func ParseCell(name string) (Cell, error) {
	jvm := maps.Clone(baseJVM)
	c := Cell{Name: name, Settings: map[string]string{}}
	for part := range strings.SplitSeq(name, "+") {
		o, known := options[part]
		if !known {
			return Cell{}, fmt.Errorf("unknown option %q of Kafka Streams; there are %s", part, strings.Join(slices.Sorted(maps.Keys(options)), ", "))
		}
		maps.Copy(jvm, o.jvm)
		maps.Copy(c.Settings, o.settings)
	}
	for _, key := range slices.Sorted(maps.Keys(jvm)) {
		c.JVM = append(c.JVM, jvm[key])
	}
	return c, nil
}

// Describe lists each option that occurs in the given cells: its name and what it means with its exact settings.
func Describe(cells []string) [][2]string {
	used := map[string]bool{}
	for _, cell := range cells {
		for part := range strings.SplitSeq(cell, "+") {
			used[part] = true
		}
	}
	var list [][2]string
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if !used[name] {
			continue
		}
		o := options[name]
		text := o.doc
		var exact []string
		for _, key := range slices.Sorted(maps.Keys(o.settings)) {
			exact = append(exact, "`"+key+"="+o.settings[key]+"`")
		}
		for _, key := range slices.Sorted(maps.Keys(o.jvm)) {
			exact = append(exact, "`"+o.jvm[key]+"`")
		}
		if len(exact) > 0 {
			text += ": " + strings.Join(exact, ", ")
		}
		list = append(list, [2]string{name, text})
	}
	return list
}
