package peer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/bench/workload"
)

func TestEveryCellOfEveryWorkloadExists(t *testing.T) {
	for _, w := range workload.All(1) {
		for _, cell := range append(slices.Clone(w.Cells), w.More...) {
			if _, err := NewStreams("", cell); err != nil {
				t.Errorf("%s: %v", w.ID, err)
			}
		}
	}
	if _, err := ParseCell("batches+cach64"); err == nil {
		t.Error("an unknown option was taken")
	}
}

func TestOptionsChangeTheCommandLine(t *testing.T) {
	w := workload.All(1)[0]
	w.Commit = 10 * time.Second
	s, err := NewStreams("CP", "g1+memory+cache64")
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Join(s.Invocation(Assignment{Workload: w, App: "app", Instance: "i0"}).Args, " ")
	for _, want := range []string{"-XX:+UseG1GC", "-cp CP millrace.bench.Main", "application.id=app", "store=memory", "statestore.cache.max.bytes=67108864",
		"processing.guarantee=exactly_once_v2", "commit.interval.ms=10000", "producer.transaction.timeout.ms=50000", "main.consumer.group.instance.id=i0"} {
		if !strings.Contains(line, want) {
			t.Errorf("no %s in %s", want, line)
		}
	}
	if strings.Contains(line, "ParallelGC") {
		t.Error("two collectors: " + line)
	}
	w.AtLeastOnce = true
	if line := strings.Join(s.Invocation(Assignment{Workload: w}).Args, " "); !strings.Contains(line, "processing.guarantee=at_least_once") || strings.Contains(line, "transaction.timeout") {
		t.Error(line)
	}
}

func TestVersionIsThatOfThePOM(t *testing.T) {
	pom, err := os.ReadFile(filepath.Join("..", "kafka-streams", "pom.xml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(pom), "<artifactId>kafka-streams</artifactId>\n      <version>"+streamsVersion+"</version>") {
		t.Errorf("pom.xml does not ask for Kafka Streams %s", streamsVersion)
	}
}
