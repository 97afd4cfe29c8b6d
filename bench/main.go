// Command bench compares Millrace with Kafka Streams, side by side on one machine, and writes the report.
//
//	bench run      measure, and keep the figures in a file
//	bench report   make the page and its picture of that file
//	bench list     show the workloads
//
// README.md says what is measured and how to read it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"millrace/bench/report"
	"millrace/bench/results"
	"millrace/bench/workload"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	switch verb {
	case "run":
		return runCommand(ctx, args)
	case "report":
		return reportCommand(args)
	case "list":
		return listCommand()
	}
	return errors.New("usage: bench run|report|list; -h behind one of them shows its flags")
}

func runCommand(ctx context.Context, args []string) error {
	o := runOptions{}
	fs := flag.NewFlagSet("run", flag.ContinueOnError)
	fs.StringVar(&o.root, "root", ".", "folder of the repository")
	fs.StringVar(&o.binary, "millrace", "", "binary to measure; empty: build it from -root")
	fs.StringVar(&o.work, "work", "", "folder for broker, logs and state; empty: a temporary one")
	fs.StringVar(&o.out, "out", "bench/results.json", "file of the figures, below -root")
	ids := fs.String("workloads", "", "IDs separated by commas, or all; empty: the default ones")
	fs.StringVar(&o.cells, "cells", "", "cells of Kafka Streams, separated by commas, instead of each workload's own")
	fs.StringVar(&o.grid, "grid", "small", "search for Kafka Streams' best cell: none (take the first), small or full")
	fs.IntVar(&o.rounds, "rounds", 3, "interleaved runs of each side")
	fs.Float64Var(&o.scale, "scale", 1, "multiplies the inputs")
	fs.Uint64Var(&o.seed, "seed", 1, "of the input")
	fs.BoolVar(&o.pin, "pin", true, "measured process and broker on different cores, where there are two")
	fs.BoolVar(&o.peer, "peer", true, "run Kafka Streams, too")
	fs.DurationVar(&o.limit, "limit", 5*time.Minute, "for one run; a run that takes longer is void")
	fs.Uint64Var(&o.paced.Rate, "rate", 10_000, "records a second of latency workloads")
	fs.DurationVar(&o.paced.Warm, "warm", 15*time.Second, "of latency workloads, not counted; whole seconds")
	fs.DurationVar(&o.paced.Measure, "measure", 20*time.Second, "of latency workloads; whole seconds")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if err := o.check(fs.Args()); err != nil {
		return err
	}
	var err error
	if o.workloads, err = workload.Select(workload.All(o.seed), split(*ids)); err != nil {
		return err
	}
	o.command = "go run ./bench run"
	fs.Visit(func(f *flag.Flag) {
		// Where things lay on this machine does not matter to whoever repeats it.
		if !slices.Contains([]string{"root", "millrace", "work", "out"}, f.Name) {
			o.command += fmt.Sprintf(" -%s=%s", f.Name, f.Value)
		}
	})
	return compare(ctx, o)
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

func reportCommand(args []string) error {
	fs := flag.NewFlagSet("report", flag.ContinueOnError)
	in := fs.String("in", "bench/results.json", "figures, as bench run wrote them")
	out := fs.String("out", "docs/performance.md", "page; its picture stands beside it")
	if err := fs.Parse(args); err != nil {
		return err
	}
	c, err := results.Load(*in)
	if err != nil {
		return fmt.Errorf("%w; bench run writes them", err)
	}
	return report.Write(c, *out)
}

func listCommand() error {
	for _, w := range workload.All(1) {
		mark := " "
		if w.Default {
			mark = "*"
		}
		fmt.Printf("%s %-4s %-55s %9d records, cells %s\n", mark, w.ID, w.Title, w.Records, strings.Join(w.Cells, " "))
	}
	fmt.Println("* is measured when no -workloads are given")
	return nil
}
