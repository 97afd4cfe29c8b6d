package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"millrace/bench/cluster"
	"millrace/bench/peer"
	"millrace/bench/process"
	"millrace/bench/results"
	"millrace/bench/trial"
	"millrace/bench/workload"
)

type runOptions struct {
	root, binary, work, out, cells, grid, command string
	rounds                                        int
	scale                                         float64
	seed                                          uint64
	pin, peer                                     bool
	limit                                         time.Duration
	paced                                         trial.Paced
	workloads                                     []workload.Workload
}

func (o runOptions) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case o.grid != "none" && o.grid != "small" && o.grid != "full":
		return fmt.Errorf("-grid %s: want none, small or full", o.grid)
	case o.rounds < 1 || o.scale <= 0 || o.paced.Rate < 1:
		return errors.New("-rounds and -rate must be at least 1, and -scale above 0")
	case o.paced.Warm%time.Second != 0 || o.paced.Measure%time.Second != 0 || o.paced.Measure < time.Second:
		return errors.New("-warm and -measure must be whole seconds, and -measure at least one")
	}
	return nil
}

// comparison is what compare works with.
type comparison struct {
	options   runOptions
	bench     *trial.Bench
	ours      peer.Side
	classpath string // of the peer
	kept      results.Comparison
}

// compare prepares both sides and a broker, and measures each workload.
func compare(ctx context.Context, o runOptions) (err error) {
	c := &comparison{options: o}
	if o.work == "" {
		if o.work, err = os.MkdirTemp("", "millrace-bench-"); err != nil {
			return err
		}
		defer func() {
			if err == nil && !slices.ContainsFunc(c.kept.Runs, func(r results.Run) bool { return r.Void != "" }) {
				err = os.RemoveAll(o.work) // there is no log that anybody wants to read
			}
		}()
	}
	if o.work, err = filepath.Abs(o.work); err != nil {
		return err
	}
	if err := os.MkdirAll(o.work, 0o755); err != nil {
		return err
	}
	if err := c.prepareSides(ctx, o); err != nil {
		return err
	}
	pins := process.Pins{}
	if o.pin {
		pins = process.SplitCores()
	}
	c.kept = results.Comparison{Begun: time.Now().UTC(), Machine: describeMachine(c.ours.(peer.Millrace).Binary), Seed: o.seed, Rounds: o.rounds, Pinned: pins != process.Pins{}, Command: o.command}
	if err := process.PinSelf(pins.Others); err != nil {
		return err
	}
	broker, err := cluster.StartBroker(ctx, filepath.Join(o.root, "scripts", "kafka.sh"), filepath.Join(o.work, "kafka"), process.Prefix(pins.Others))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Stop()) }()
	kafka, err := cluster.Connect(broker.Addr)
	if err != nil {
		return err
	}
	defer kafka.Close()
	ready, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := kafka.Ready(ready); err != nil {
		return err
	}
	c.bench = &trial.Bench{Cluster: kafka, BrokerPID: broker.PID, Pins: pins, Work: o.work, Limit: o.limit, Paced: o.paced, Names: names(o, c.ours.(peer.Millrace).Binary)}
	fmt.Printf("broker %s, logs in %s, figures in %s\n", broker.Addr, o.work, o.out)
	for _, w := range o.workloads {
		w.Records = max(1000, uint64(float64(w.Records)*o.scale))
		if err := c.measure(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// names is how paths of this machine are written in the figures, which others read.
func names(o runOptions, binary string) *strings.Replacer {
	pairs := []string{binary, "millrace", o.work, "WORK"}
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		pairs = append(pairs, home+"/", "~/")
	}
	if root, err := filepath.Abs(o.root); err == nil {
		pairs = append(pairs, root+"/", "")
	}
	return strings.NewReplacer(pairs...)
}

// prepareSides builds what is to be measured.
func (c *comparison) prepareSides(ctx context.Context, o runOptions) (err error) {
	binary := o.binary
	if binary == "" {
		binary = filepath.Join(o.work, "millrace")
		if err := buildMillrace(ctx, o.root, binary); err != nil {
			return err
		}
	}
	if binary, err = filepath.Abs(binary); err != nil {
		return err
	}
	c.ours = peer.Millrace{Binary: binary, Jobs: filepath.Join(o.root, "bench", "jobs")}
	if o.peer {
		c.classpath, err = peer.Build(filepath.Join(o.root, "bench", "kafka-streams"))
	}
	return err
}

// measure finds the peer's best cell, then lets both sides take turns.
func (c *comparison) measure(ctx context.Context, w workload.Workload) error {
	kept := results.Workload{ID: w.ID, Title: w.Title, Kind: string(w.Kind), Records: w.Records, Users: w.Stream.Users, Partitions: w.Stream.Partitions,
		CommitMS: w.Commit.Milliseconds(), Guarantee: w.Guarantee()}
	if w.Kind == workload.Latency {
		kept.Records = c.options.paced.Rate * uint64(c.options.paced.Measure/time.Second)
	}
	c.kept.Workloads = append(c.kept.Workloads, kept)
	fmt.Printf("\n%s %s\n", w.ID, w.Title)
	best, err := c.search(ctx, w)
	if err != nil {
		return err
	}
	for round := 1; round <= c.options.rounds; round++ {
		if err := c.once(ctx, c.ours, w, round); err != nil {
			return err
		}
		if best == nil {
			continue
		}
		if err := c.once(ctx, best, w, round); err != nil {
			return err
		}
	}
	return nil
}

// search tries the cells, and returns the peer in its best one; nil when there is no peer, or none of its runs was valid.
func (c *comparison) search(ctx context.Context, w workload.Workload) (peer.Side, error) {
	if !c.options.peer {
		return nil, nil
	}
	cells := c.cells(w)
	best := cells[0]
	if len(cells) > 1 {
		begin := len(c.kept.Runs)
		for _, cell := range cells {
			side, err := peer.NewStreams(c.classpath, cell)
			if err != nil {
				return nil, err
			}
			if err := c.once(ctx, side, w, 0); err != nil {
				return nil, err
			}
		}
		var ok bool
		if best, ok = results.Best(c.kept.Runs[begin:]); !ok {
			fmt.Println("  no cell of Kafka Streams gave a valid run that was long enough for steady figures; it takes no part in the rounds. A larger -scale or -limit may help")
			return nil, nil
		}
	}
	return peer.NewStreams(c.classpath, best)
}

func (c *comparison) cells(w workload.Workload) []string {
	switch {
	case c.options.cells != "":
		return split(c.options.cells)
	case c.options.grid == "none":
		return w.Cells[:1]
	case c.options.grid == "full":
		return append(slices.Clone(w.Cells), w.More...)
	}
	return w.Cells
}

// once runs a side, and keeps what came of it at once.
func (c *comparison) once(ctx context.Context, side peer.Side, w workload.Workload, round int) error {
	run, err := c.bench.Run(ctx, side, w, round)
	if err != nil {
		return err
	}
	fmt.Println("  " + line(run))
	c.kept.Runs = append(c.kept.Runs, run)
	out := c.options.out
	if !filepath.IsAbs(out) {
		out = filepath.Join(c.options.root, out)
	}
	return c.kept.Save(out)
}

// line is a run in one line.
func line(r results.Run) string {
	name := r.Side
	if r.Cell != "" {
		name += " " + r.Cell
	}
	head := fmt.Sprintf("%d %-50s ", r.Round, name)
	switch {
	case r.Void != "":
		return head + "VOID: " + r.Void
	case r.Latency != nil:
		return head + fmt.Sprintf("p50 %.1f ms, p99 %.1f, p99.9 %.1f, %.2f µs/record", r.Latency.P50, r.Latency.P99, r.Latency.P999, r.CPUSteady)
	case r.Recovery != nil:
		return head + fmt.Sprintf("first result after %.2f s and %.2f CPU s, caught up after %.2f s", r.Recovery.FirstResultSeconds, r.Recovery.FirstResultCPU, r.Recovery.CaughtUpSeconds)
	}
	return head + fmt.Sprintf("%.3f µs/record steady, %.3f whole, %.0f k/s, peak %d MiB, neighbours %.2f", r.CPUSteady, r.CPUWhole, r.RateSteady/1000, r.PeakRSS>>20, r.Neighbours)
}
