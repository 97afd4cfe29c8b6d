package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"millrace/devbroker"
	"millrace/record"
	"millrace/topology"
)

// defaultRate is generated for every source that can be, when no --generate is given.
const defaultRate = "200/s"

// historyRecords bounds what history costs at the start, whatever the rate: more would only be waited for.
const historyRecords = 40_000

// loads reads the flags. Without --generate every JSON source that declares its fields gets records.
func (d *dev) loads(spec topology.Spec) ([]devbroker.Load, error) {
	flags := d.opts.load
	if len(flags.Generate) == 0 {
		for _, s := range spec.Sources {
			if len(s.Fields) > 0 && isJSON(s) {
				flags.Generate = append(flags.Generate, s.Name.Value+"="+defaultRate)
			}
		}
	}
	loads, err := flags.Parse()
	if err != nil {
		return nil, err
	}
	for _, l := range loads {
		if _, err := generatorOf(spec, l); err != nil {
			return nil, err
		}
	}
	return loads, nil
}

func isJSON(s topology.SourceSpec) bool { return s.Format.Value == "" || s.Format.Value == "json" }

func generatorOf(spec topology.Spec, load devbroker.Load) (*devbroker.Generator, error) {
	var names []string
	for _, s := range spec.Sources {
		if s.Name.Value != load.Source {
			names = append(names, s.Name.Value)
			continue
		}
		if !isJSON(s) {
			return nil, fmt.Errorf("generate records for source %s: its format is %s; only JSON is generated", load.Source, s.Format.Value)
		}
		o := devbroker.GeneratorOptions{Load: load, Topic: s.Topic.Value, Seed: uint64(time.Now().UnixNano())}
		for _, f := range s.Fields {
			o.Fields = append(o.Fields, record.Field{Name: f.Name.Value, Type: f.Type})
		}
		if path, ok := strings.CutPrefix(s.Key.Value, "value."); ok {
			o.Key = path
		}
		return devbroker.NewGenerator(o)
	}
	return nil, fmt.Errorf("generate records for source %s: the job has no such source; it has %s", load.Source, strings.Join(names, ", "))
}

// generate sends records at the load's rate until ctx ends.
func (d *dev) generate(ctx context.Context, spec topology.Spec, load devbroker.Load) error {
	g, err := generatorOf(spec, load)
	if err != nil {
		return err
	}
	return g.Run(ctx, d.broker.Addr())
}

// generateHistory fills sources that have no records yet with the time before now.
func (d *dev) generateHistory(ctx context.Context, spec topology.Spec, loads []devbroker.Load) error {
	if d.opts.history == 0 {
		return nil
	}
	client, err := devbroker.NewClient(d.broker.Addr())
	if err != nil {
		return err
	}
	defer client.Close()
	now := time.Now()
	for _, load := range loads {
		topic := sourceNamed(&spec, load.Source).Topic.Value // loads has made sure of it
		ends, err := client.EndOffsets(ctx, topic)
		if err != nil {
			return err
		}
		empty := true
		for _, end := range ends {
			empty = empty && end == 0
		}
		if !empty {
			continue
		}
		g, err := generatorOf(spec, load)
		if err != nil {
			return err
		}
		// A whole minute is the commonest beginning of a window: the first result is then complete, too.
		from := now.Add(-d.opts.history).Truncate(time.Minute)
		if err := produceHistory(ctx, client, topic, history{g, from, now, load.PerSecond}); err != nil {
			return err
		}
	}
	return nil
}

// history is a stretch of event time to fill with records.
type history struct {
	generator *devbroker.Generator
	from, to  time.Time
	perSecond float64
}

func produceHistory(ctx context.Context, client *devbroker.Client, topic string, h history) error {
	length := h.to.Sub(h.from)
	n := int(min(h.perSecond*length.Seconds(), historyRecords))
	const chunk = 2000
	batch := make([]devbroker.Record, 0, chunk)
	for i := range n {
		at := h.from.Add(time.Duration(float64(length) * float64(i) / float64(n)))
		batch = append(batch, h.generator.Next(at))
		if len(batch) == chunk || i == n-1 {
			if err := client.Produce(ctx, topic, batch...); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return nil
}

// describeLoad says what a source gets.
func describeLoad(l devbroker.Load) string {
	text := fmt.Sprintf("%s  %g records/s", l.Source, l.PerSecond)
	if l.LateShare > 0 {
		text += fmt.Sprintf(", %g%% late by %s", 100*l.LateShare, l.LateBy)
	}
	if l.Duplicates > 0 {
		text += fmt.Sprintf(", %g%% twice", 100*l.Duplicates)
	}
	if l.Skew > 0 {
		text += fmt.Sprintf(", skew zipf:%g", l.Skew)
	}
	return text
}
