package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"millrace/config"
	"millrace/formats"
	"millrace/kafka"
	"millrace/observe"
	"millrace/rebalance"
	"millrace/task"
	"millrace/topology"
)

func newRunCommand(a *app) *cobra.Command {
	profile := ""
	run := &cobra.Command{
		Use:   "run",
		Short: "Run the job until SIGTERM: the daemon of production",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			job, err := a.loadJob()
			if err != nil {
				return err
			}
			done, err := startProfile(profile)
			if err != nil {
				return err
			}
			ctx, stop := untilStopped()
			defer stop()
			return errors.Join((&replica{app: a, job: job}).run(ctx), done())
		},
	}
	run.Flags().StringVar(&profile, "cpuprofile", "", "write a CPU profile to this file until the process ends")
	return run
}

// startProfile profiles the CPU into a file until done is called; without a file it does nothing.
func startProfile(file string) (done func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("--cpuprofile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("--cpuprofile: %w", err), f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

// replica is one process of the job: it builds the parts in order, and takes them down in reverse.
type replica struct {
	app  *app
	job  *config.Config
	dir  *stateDir
	obs  *observe.Observer
	plan *topology.Plan
	// shown is the plan for HTTP, which may ask while the true one is still being learnt.
	shown atomic.Pointer[topology.Plan]

	client     *kafka.Client
	fetcher    *kafka.Fetcher
	producer   *kafka.Producer
	membership *kafka.Membership
	manager    *rebalance.Manager
}

func (r *replica) run(ctx context.Context) (err error) {
	s := r.job.Settings
	if r.dir, err = openStateDir(s.State.Dir, s.ApplicationID, func(text string) { r.obs.Warn("MR3007", "the store engine says", "text", text) }); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.dir.close()) }()
	name := s.Kafka.GroupInstanceID
	if name == "" {
		if name, err = r.dir.replicaID(); err != nil {
			return err
		}
	}
	if r.plan, err = r.compile(nil); err != nil {
		return err
	}
	if err := r.observe(name); err != nil {
		return err
	}
	limitMemory(s)
	r.obs.Starting()
	background, cancel := context.WithCancel(context.Background())
	defer cancel()
	stopped, err := r.serve(background)
	if err != nil {
		return err
	}
	err = r.work(ctx, background, name)
	r.obs.Stopped(err)
	cancel()
	<-stopped
	return err
}

func (r *replica) compile(keyed map[string]bool) (*topology.Plan, error) {
	plan, list := compile(&r.job.Spec, keyed)
	if plan == nil {
		if err := config.Render(r.app.stderr, list, config.Text); err != nil {
			return nil, err
		}
		return nil, &exitError{code: exitFindings}
	}
	r.shown.Store(plan)
	return plan, nil
}

func (r *replica) observe(instance string) (err error) {
	s, b := r.job.Settings, readBuild()
	r.obs, err = observe.New(observe.Options{ApplicationID: s.ApplicationID, Instance: instance, Version: b.Version, Revision: b.Revision, Topology: r.plan.Shape(), Guarantee: s.Processing.Guarantee,
		LogLevel: s.Log.Level, LogFormat: s.Log.Format, Out: r.app.stderr, Terminal: isTerminal(r.app.stderr), PartitionLabels: s.Metrics.PartitionLabels})
	return err
}

// serve starts HTTP and the observer's clock, which live longer than the work: the last states must be seen.
func (r *replica) serve(ctx context.Context) (stopped <-chan struct{}, err error) {
	off := make(chan error)
	close(off)
	var served <-chan error = off
	if listen := r.job.Settings.HTTP.Listen; listen != "" {
		pages := observe.Pages{Topology: r.explain, Config: r.showConfig, AdminToken: r.job.Settings.HTTP.AdminToken.Reveal()}
		if _, served, err = r.obs.Serve(ctx, listen, r.obs.Handler(pages)); err != nil {
			return nil, err
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.obs.Run(ctx) // ends with ctx, and with nothing else
		<-served
	}()
	return done, nil
}

// work connects, joins and runs until ctx ends. background outlives ctx: the last commit needs the membership.
func (r *replica) work(ctx, background context.Context, name string) error {
	s := r.job.Settings
	kc := kafkaConfig(s, name)
	kc.FormerMember, kc.Joined, kc.Requested = r.dir.formerMember(), r.dir.joined, r.obs.KafkaRequest
	if err := r.connect(ctx, kc); err != nil {
		return ended(ctx, err)
	}
	defer r.client.Close()
	var layout *rebalance.Layout
	var partitions topics
	err := r.patiently(ctx, func() (err error) { layout, partitions, err = r.prepare(ctx); return err })
	if err == nil {
		err = r.patiently(ctx, func() error { return r.build(kc, layout, partitions) })
	}
	if err != nil {
		return ended(ctx, err)
	}
	defer r.close()
	member, leave := context.WithCancel(background)
	var watch sync.WaitGroup
	watch.Go(func() { r.watchPartitions(member, r.plan, partitions) })
	defer watch.Wait()
	defer leave()
	identity := make(chan error, 1)
	work, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		err := r.membership.Run(member)
		if err != nil {
			stop()
		}
		identity <- err
	}()
	err = r.manager.Run(work, s.ShutdownTimeout)
	leave()
	return errors.Join(err, <-identity, r.membership.Close())
}

// ended turns an error that only says that the process was asked to stop into a clean end.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// connect waits for the cluster.
func (r *replica) connect(ctx context.Context, c kafka.Config) error {
	return r.patiently(ctx, func() (err error) {
		if r.client, err = kafka.Connect(c); err == nil {
			r.obs.Connected(r.client.Describe())
		}
		return err
	})
}

// prepare learns undeclared keys, checks and creates topics, and lists the tasks.
func (r *replica) prepare(ctx context.Context) (*rebalance.Layout, topics, error) {
	if len(r.plan.Unknown) > 0 {
		keyed, err := learnKeys(ctx, r.client, r.plan, func(step string, keyed bool, from string) {
			r.obs.Warn("MR4005", "the source declares no key; learnt whether its records are keyed by the step's group", "step", step, "keyed", keyed, "from", from)
		})
		if err == nil {
			r.plan, err = r.compile(keyed)
		}
		if err != nil {
			return nil, topics{}, err
		}
	}
	t, layout, err := findTopics(ctx, r.client, r.plan, r.job.Settings)
	if err == nil {
		err = samePlan(ctx, r.client, r.plan, t)
	}
	return layout, t, err
}

func (r *replica) build(kc kafka.Config, layout *rebalance.Layout, t topics) (err error) {
	s := r.job.Settings
	var sources []string
	for _, sub := range r.plan.Subtopologies {
		for _, in := range sub.Inputs {
			sources = append(sources, in.Topic)
		}
	}
	late := &lateListener{}
	if r.membership, err = r.client.NewMembership(sources, planner{layout, r.dir.local}, late); err != nil {
		return err
	}
	if r.producer, err = kafka.NewProducer(r.client, r.membership); err != nil {
		return err
	}
	if r.fetcher, err = r.client.NewFetcher(); err != nil {
		return err
	}
	tasks := max(len(layout.Tasks), 1)
	budget := int(s.State.MemoryBudget)
	r.manager = rebalance.New(rebalance.Options{Layout: layout, Producer: r.producer, Fetcher: fetcher{r.fetcher}, Listener: r.obs,
		Purge: r.purge, FreeBytes: r.dir.free, MinFree: int64(s.State.MinFreeBytes), CommitInterval: s.Processing.CommitInterval, LingerInterval: s.Processing.LingerInterval,
		TransactionTimeout: s.Kafka.Producer.TransactionTimeout, ReleaseTimeout: releaseTimeout(s), CacheBytes: budget, Clock: time.Now,
		Task: task.Options{Plan: r.plan, Formats: formats.ByName{}, Cluster: cluster{r.client}, Listener: r.obs, OpenEngine: r.dir.openEngine, Wipe: r.dir.wipe,
			Partitions: t.of, Writers: writers(r.plan, layout), Drained: r.fetcher.Wake, Clock: time.Now, TransactionalID: kc.TransactionalID, ExactlyOnce: kc.ExactlyOnce,
			TakeProgress: s.State.OffsetsPolicy == "progress", FlushInterval: s.State.FlushInterval, EpochBytes: max(int(s.Processing.MaxEpochBytes)/tasks, 4<<20), MaxRecordBytes: kc.MaxBatchBytes}})
	late.Manager = r.manager
	return nil
}

// lateListener lets the membership be made before the manager that listens to it.
type lateListener struct{ *rebalance.Manager }

// releaseTimeout is how long a rebalance waits for the last commit of revoked tasks: heartbeats stand still meanwhile.
func releaseTimeout(s config.Settings) time.Duration {
	return min(s.Kafka.SessionTimeout, s.Kafka.RebalanceTimeout) / 3
}

func (r *replica) purge(topic string, before map[int32]int64) {
	if err := r.client.Purge(topic, before); err != nil {
		r.obs.Warn("MR2010", "a repartition topic could not be purged; it grows until it can", "topic", topic, "cause", err.Error())
	}
}

func (r *replica) close() {
	r.fetcher.Close()
	r.producer.Close()
}

// limitMemory tells the garbage collector how lazy it may be. Rows lie outside its heap, which is small therefore: it may
// grow to three times what is live, up to a bound that leaves room for several epochs. GOGC and GOMEMLIMIT override it.
func limitMemory(s config.Settings) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(128<<20 + 6*int64(s.Processing.MaxEpochBytes))
	}
}
