// Package trial runs one side on one workload, measures it, and finds out whether its results were exact.
package trial

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"millrace/bench/cluster"
	"millrace/bench/peer"
	"millrace/bench/process"
	"millrace/bench/results"
	"millrace/bench/workload"
)

const (
	stopLimit = time.Minute
	// pollEvery is fine enough for a run of a second, and costs the broker next to nothing.
	pollEvery = 50 * time.Millisecond
)

// Bench is where trials take place. It belongs to one goroutine.
type Bench struct {
	Cluster   *cluster.Cluster
	BrokerPID int // 0: unknown
	Pins      process.Pins
	Work      string        // folder for logs and state
	Limit     time.Duration // for one run
	Paced     Paced         // of latency trials
	// Names replaces paths of this machine in what is kept of command lines.
	Names *strings.Replacer

	inputs  map[string]bool
	oracles map[string]any
	runs    int
}

// Run runs a trial of the workload's kind. An error means that the benchmark itself failed; whatever the side does wrong makes the
// run void.
func (b *Bench) Run(ctx context.Context, side peer.Side, w workload.Workload, round int) (results.Run, error) {
	b.runs++
	name := fmt.Sprintf("bench-%s-%d-%d", w.ID, os.Getpid(), b.runs)
	dir := filepath.Join(b.Work, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return results.Run{}, err
	}
	t := &trial{Bench: b, side: side, dir: dir, assigned: peer.Assignment{Workload: w, App: name, Out: name + "-out", Brokers: b.Cluster.Addr, Dir: filepath.Join(dir, "state")},
		run: results.Run{Workload: w.ID, Side: side.Name(), Cell: side.Cell(), Round: round, Records: w.Records}}
	err := b.Cluster.CreateTopic(ctx, t.assigned.Out, w.Stream.Partitions)
	if err != nil {
		return t.run, err
	}
	switch w.Kind {
	case workload.Backlog:
		err = t.backlog(ctx)
	case workload.Recovery:
		err = t.recovery(ctx)
	case workload.Latency:
		err = t.latency(ctx)
	}
	if t.process != nil {
		t.process.Kill()
	}
	if err != nil {
		return t.run, fmt.Errorf("%s on %s, log in %s: %w", side.Name(), w.ID, t.log(), err)
	}
	return t.run, t.tidy(ctx)
}

// trial is one run while it happens.
type trial struct {
	*Bench
	side     peer.Side
	dir      string
	assigned peer.Assignment
	process  *process.Process // nil: none runs
	run      results.Run
}

func (t *trial) workload() workload.Workload { return t.assigned.Workload }

func (t *trial) log() string { return filepath.Join(t.dir, "log") }

// tidy gives disk space back. The log of a void run stays.
func (t *trial) tidy(ctx context.Context) error {
	if err := t.Cluster.DeleteTopics(ctx, t.assigned.App+"-"); err != nil {
		return err
	}
	if t.run.Void != "" {
		return os.RemoveAll(t.assigned.Dir)
	}
	return os.RemoveAll(t.dir)
}

// start starts the side's process on the processor's cores.
func (t *trial) start() error {
	line := t.side.Invocation(t.assigned)
	t.run.Args, t.run.Env = t.named(line.Args), t.named(line.Env)
	p, err := process.Start(process.Command{Args: append(process.Prefix(t.Pins.Processor), line.Args...), Env: line.Env, Log: t.log()})
	t.process = p
	return err
}

func (t *trial) named(words []string) []string {
	var named []string
	for _, w := range words {
		named = append(named, t.Names.Replace(w))
	}
	return named
}

// stop ends the process cleanly; failing to is the side's fault.
func (t *trial) stop() {
	err := t.process.Stop(stopLimit)
	t.process = nil
	if err != nil {
		t.void(err)
	}
}

// void keeps the first reason.
func (t *trial) void(reason error) {
	if t.run.Void == "" {
		t.run.Void = reason.Error()
	}
}

// preloaded makes sure that the workload's input exists, once for all runs that share it, and returns its topic.
func (b *Bench) preloaded(ctx context.Context, w workload.Workload) (string, error) {
	s := w.Stream
	topic := fmt.Sprintf("clicks-%s-u%d-p%d-r%d-n%d-s%d", s.Variant, s.Users, s.Partitions, s.Rate, w.Records, s.Seed)
	if b.inputs[topic] {
		return topic, nil
	}
	if err := b.Cluster.DeleteTopics(ctx, topic); err != nil {
		return "", err
	}
	if err := b.Cluster.CreateTopic(ctx, topic, s.Partitions); err != nil {
		return "", err
	}
	if err := b.Cluster.Preload(ctx, topic, s, 0, w.Records); err != nil {
		return "", err
	}
	if b.inputs == nil {
		b.inputs = map[string]bool{}
	}
	b.inputs[topic] = true
	return topic, nil
}
