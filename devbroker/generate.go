package devbroker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/record"
)

// GeneratorOptions says which records a Generator makes.
type GeneratorOptions struct {
	Load   Load
	Topic  string
	Fields []record.Field // a dot in a name makes a nested object
	Key    string         // the field that gives the record's key, as text; empty: no key
	Seed   uint64         // the same seed gives the same records
}

// Generator makes JSON records that look like a source's. It is for one goroutine.
type Generator struct {
	options GeneratorOptions
	random  *rand.Rand
	zipf    *rand.Zipf // nil: all ids are alike
	root    *object
	last    Record
	repeat  bool
	buf     []byte
	key     []byte
}

// distinctIDs is small enough that windows see each id often, and large enough to look like many.
const distinctIDs = 300

// NewGenerator checks that a value can be made for every field.
func NewGenerator(o GeneratorOptions) (*Generator, error) {
	o.Key = strings.TrimPrefix(o.Key, "value.")
	g := &Generator{options: o, random: rand.New(rand.NewPCG(o.Seed, 0x6d696c6c72616365)), root: &object{}}
	if o.Load.Skew > 0 {
		g.zipf = rand.NewZipf(g.random, o.Load.Skew, 1, distinctIDs-1)
	}
	if len(o.Fields) == 0 {
		return nil, fmt.Errorf("generate records for source %s: it declares no fields; add them under fields:", o.Load.Source)
	}
	for _, f := range o.Fields {
		if err := g.root.add(strings.Split(f.Name, "."), f); err != nil {
			return nil, fmt.Errorf("generate records for source %s: field %s: %w", o.Load.Source, f.Name, err)
		}
	}
	if o.Key != "" && !slices.ContainsFunc(o.Fields, func(f record.Field) bool { return f.Name == o.Key }) {
		return nil, fmt.Errorf("generate records for source %s: its key %q is no declared field, so no key can be made; "+
			"declare it under fields:", o.Load.Source, o.Key)
	}
	return g, nil
}

// Next makes the next record at the time now: an honest one, a late one, or the one before it once more.
func (g *Generator) Next(now time.Time) Record {
	if g.repeat {
		g.repeat = false
		return g.last
	}
	load := g.options.Load
	at := now
	if load.LateShare > 0 && g.random.Float64() < load.LateShare {
		at = now.Add(-load.LateBy)
	}
	g.key = nil
	g.buf = g.appendObject(g.buf[:0], g.root, at)
	g.last = Record{Timestamp: at.UnixMilli(), Key: g.key, Value: slices.Clone(g.buf)}
	g.repeat = load.Duplicates > 0 && g.random.Float64() < load.Duplicates
	return g.last
}

// tick is how often records are sent: rarely enough to cost nothing, often enough to look like a stream.
const tick = 20 * time.Millisecond

// Run writes records to the brokers at addr at the load's rate until the context ends, which is no error. A broker that
// does not keep up slows it down; what it could not send in a second it does not make up for.
func (g *Generator) Run(ctx context.Context, addr string) error {
	client, err := NewClient(addr)
	if err != nil {
		return err
	}
	defer client.Close()
	failed := make(chan error, 1)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	owed, last := 0.0, time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return fmt.Errorf("generate records for source %s: %w", g.options.Load.Source, err)
		case now := <-ticker.C:
			perSecond := g.options.Load.PerSecond
			owed = min(owed+perSecond*now.Sub(last).Seconds(), max(perSecond, 1))
			last = now
			for ; owed >= 1; owed-- {
				client.kgo.Produce(ctx, g.Next(time.Now()).toProduce(g.options.Topic, byKey), reportTo(ctx, failed))
			}
		}
	}
}

// reportTo keeps the first failure that is not our own stop; the others say the same.
func reportTo(ctx context.Context, failed chan<- error) func(*kgo.Record, error) {
	return func(_ *kgo.Record, err error) {
		if err == nil || ctx.Err() != nil {
			return
		}
		select {
		case failed <- err:
		default:
		}
	}
}
