package cli

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/config"
	"millrace/driver"
	"millrace/formats"
	"millrace/record"
	"millrace/topology"
)

// epochs says when a test's epochs are committed.
type epochs uint8

const (
	everyStep   epochs = iota // after every step of the input
	atCommits                 // at commit steps and in the end; the clocks' steps commit, too, since no log could repeat them
	interrupted               // after every step, each of which is cut off once before its commit and done again
)

// play runs a test's input through the job.
func play(job *config.Config, t *config.Test, when epochs) (*driver.Driver, error) {
	arrivals, err := arrivals(job, t)
	if err != nil {
		return nil, err
	}
	d, err := driver.New(driver.Options{Spec: &job.Spec, Formats: formats.ByName{}, Partitions: int32(t.Partitions),
		MaxRecordBytes: int(job.Settings.Kafka.Producer.MaxBatchBytes), Coming: slices.DeleteFunc(slices.Clone(arrivals), func(a driver.Arrival) bool { return a.Source == "" })})
	if err != nil {
		return nil, err
	}
	for i := range t.Input {
		s := &t.Input[i]
		err := playStep(d, s, arrivals[i].Record)
		if err == nil && when == interrupted {
			err = interrupt(d, s, i)
		}
		if err == nil && (when != atCommits || s.Kind == config.StepCommit || s.Kind == config.StepAdvanceWallClock || s.Kind == config.StepAdvanceWatermark) {
			err = d.Commit()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Pos, err)
		}
	}
	return d, d.Commit()
}

func playStep(d *driver.Driver, s *config.TestStep, r record.Record) error {
	switch s.Kind {
	case config.StepRecord:
		return d.Pipe(s.Record.Source.Value, s.Record.Partition, r)
	case config.StepAdvanceWallClock:
		return d.AdvanceWallClock(s.Advance.Value)
	case config.StepAdvanceWatermark:
		return d.AdvanceWatermark(s.Source.Value, time.UnixMilli(s.To))
	case config.StepRestart:
		return d.Restart(false)
	case config.StepRebalance:
		return d.Rebalance()
	}
	return d.Commit()
}

// interrupt cuts a step off before its commit, each step in another way, so that its work has to be done again. A watermark
// that was moved by decree is moved again; of a wall clock's step nothing is taken back, since silence is not measured
// over a restart.
func interrupt(d *driver.Driver, s *config.TestStep, i int) error {
	if s.Kind != config.StepRecord && s.Kind != config.StepAdvanceWatermark {
		return nil
	}
	ways := []func() error{
		func() error { return d.Restart(false) }, d.AbortEpoch, func() error { return d.Restart(true) }, d.CrashAfterCommit, d.Rebalance,
	}
	if err := ways[i%len(ways)](); err != nil || s.Kind == config.StepRecord {
		return err
	}
	return d.AdvanceWatermark(s.Source.Value, time.UnixMilli(s.To))
}

// arrivals encodes the test's records as their sources have them, in the order of the steps; other steps leave a gap.
func arrivals(job *config.Config, t *config.Test) ([]driver.Arrival, error) {
	now := driver.Start
	all := make([]driver.Arrival, len(t.Input))
	for i := range t.Input {
		s := &t.Input[i]
		if s.Kind == config.StepAdvanceWallClock {
			now = now.Add(s.Advance.Value)
		}
		if s.Kind != config.StepRecord {
			continue
		}
		source := sourceNamed(&job.Spec, s.Record.Source.Value)
		if source == nil {
			return nil, fmt.Errorf("%s: the job has no source %q", s.Record.Source.Pos, s.Record.Source.Value)
		}
		r, err := encodeRecord(source, &s.Record)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Pos, err)
		}
		if !s.Record.HasTimestamp {
			r.Timestamp = now.UnixMilli()
		}
		all[i] = driver.Arrival{Source: source.Name.Value, Record: r}
	}
	return all, nil
}

func sourceNamed(spec *topology.Spec, name string) *topology.SourceSpec {
	for i := range spec.Sources {
		if spec.Sources[i].Name.Value == name {
			return &spec.Sources[i]
		}
	}
	return nil
}

func encodeRecord(source *topology.SourceSpec, t *config.TestRecord) (r record.Record, err error) {
	r.Timestamp = t.Timestamp
	if r.Value, err = encodeDatum(source.Format.Value, t.Value, "value"); err != nil {
		return r, err
	}
	key := t.Key
	if !key.Set {
		key = declaredKey(source, r.Value)
	}
	format := source.KeyFormat.Value
	if format == "" {
		format = "string"
	}
	if r.Key, err = encodeDatum(format, key, "key"); err != nil {
		return r, err
	}
	for _, h := range t.Headers {
		header := record.Header{Key: []byte(h.Name.Value)}
		if !h.Value.Null {
			header.Value = []byte(h.Value.Text)
		}
		r.Headers = append(r.Headers, header)
	}
	return r, nil
}

// encodeDatum writes a key or a value in a format; nil for null and for what was not written.
func encodeDatum(format string, d config.Datum, what string) ([]byte, error) {
	switch {
	case !d.Set || d.Null:
		return nil, nil
	case d.Raw:
		return []byte(d.Text), nil
	case format == "" || format == "json":
		return d.JSON, nil
	case len(d.JSON) > 0 && (d.JSON[0] == '{' || d.JSON[0] == '['):
		return nil, fmt.Errorf("%s: the source's format is %s, which has no lists and maps; write plain text", what, format)
	case format == "long":
		n, err := strconv.ParseInt(d.Text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not a long; raw: writes the bytes as they are", what, d.Text)
		}
		return binary.BigEndian.AppendUint64(nil, uint64(n)), nil
	}
	return []byte(d.Text), nil
}

var fieldPath = regexp.MustCompile(`^value(\.[A-Za-z_][A-Za-z0-9_]*)+$`)

// declaredKey is the key that a record has which keeps what its source says about keys: a test need not repeat it.
func declaredKey(source *topology.SourceSpec, value []byte) config.Datum {
	path := source.Key.Value
	if !fieldPath.MatchString(path) {
		return config.Datum{}
	}
	v, err := parseJSON(value)
	if err != nil {
		return config.Datum{}
	}
	for _, name := range strings.Split(path, ".")[1:] {
		fields, ok := v.(map[string]any)
		if !ok {
			return config.Datum{}
		}
		v = fields[name]
	}
	text, isText := v.(string)
	if !isText {
		text = showJSON(v)
	}
	return config.Datum{Set: v != nil, Text: text, JSON: []byte(showJSON(v))}
}
