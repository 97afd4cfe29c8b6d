package peer

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// streamsVersion must be that of kafka-streams/pom.xml.
const streamsVersion = "4.4.0"

// Streams is Kafka Streams with the settings of one cell of the grid.
type Streams struct {
	classpath string
	cell      Cell
}

// NewStreams returns the peer for a cell such as "cache64+memory".
func NewStreams(classpath, cell string) (Streams, error) {
	c, err := ParseCell(cell)
	return Streams{classpath: classpath, cell: c}, err
}

// Name implements Side.
func (Streams) Name() string { return "Kafka Streams " + streamsVersion }

// Cell implements Side.
func (s Streams) Cell() string { return s.cell.Name }

// Invocation implements Side.
func (s Streams) Invocation(a Assignment) Invocation {
	w := a.Workload
	settings := map[string]string{
		"application.id":           a.App,
		"bootstrap.servers":        a.Brokers,
		"state.dir":                a.Dir,
		"commit.interval.ms":       milliseconds(w.Commit),
		"session.timeout.ms":       milliseconds(w.Session),
		"heartbeat.interval.ms":    milliseconds(min(3*time.Second, w.Session/3)),
		"num.stream.threads":       "1",
		"processing.guarantee":     "exactly_once_v2",
		"consumer.isolation.level": "read_committed",
		// Event times lie in the past. Without this the broker deletes open windows from the changelog, by their time.
		"windowstore.changelog.additional.retention.ms": milliseconds(10 * 365 * 24 * time.Hour),
		"job": string(w.Job), "in": a.In, "out": a.Out, "store": "rocksdb", "json": "scan",
	}
	if w.AtLeastOnce {
		settings["processing.guarantee"] = "at_least_once"
	} else {
		settings["producer.transaction.timeout.ms"] = milliseconds(max(10*time.Second, 5*w.Commit))
	}
	if a.Instance != "" {
		settings["main.consumer.group.instance.id"] = a.Instance
	}
	maps.Copy(settings, s.cell.Settings)
	if settings["group.protocol"] == "streams" {
		// The broker has these two in this protocol, and the client refuses them.
		delete(settings, "session.timeout.ms")
		delete(settings, "heartbeat.interval.ms")
	}
	args := append([]string{"java"}, s.cell.JVM...)
	args = append(args, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", s.classpath, "millrace.bench.Main")
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, name+"="+settings[name])
	}
	return Invocation{Args: args}
}

// Build compiles the peer with Maven in folder dir, unless that is done, and returns its class path.
func Build(dir string) (classpath string, err error) {
	target := filepath.Join(dir, "target")
	list := filepath.Join(target, "classpath")
	if !upToDate(dir, list) {
		cmd := exec.Command("mvn", "-q", "-B", "-Dstyle.color=never", "-f", filepath.Join(dir, "pom.xml"), "compile", "dependency:build-classpath",
			"-Dmdep.outputFile="+filepath.Join("target", "classpath"))
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build the Kafka Streams peer (it needs a JDK 17 and Maven): %w\n%s", err, out)
		}
	}
	jars, err := os.ReadFile(list)
	if err != nil {
		return "", fmt.Errorf("class path of the Kafka Streams peer: %w", err)
	}
	return filepath.Join(target, "classes") + ":" + strings.TrimSpace(string(jars)), nil
}

// upToDate says whether file is newer than everything that the peer is built from.
func upToDate(dir, file string) bool {
	built, err := os.Stat(file)
	if err != nil {
		return false
	}
	sources, err := filepath.Glob(filepath.Join(dir, "src", "main", "java", "millrace", "bench", "*.java"))
	if err != nil {
		return false
	}
	for _, source := range append(sources, filepath.Join(dir, "pom.xml")) {
		if info, err := os.Stat(source); err != nil || info.ModTime().After(built.ModTime()) {
			return false
		}
	}
	return true
}
