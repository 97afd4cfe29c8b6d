package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"millrace/config"
	"millrace/devbroker"
)

// devOptions are the flags of dev.
type devOptions struct {
	load    devbroker.LoadFlags
	dataDir string
	watch   bool
	port    int           // 0: any free one
	moved   bool          // the port is the default, so another one may be taken when it is in use
	history time.Duration // of event time that generated data begins with; 0: none
	lines   int           // results shown a second and sink; 0: all
}

func newDevCommand(a *app) *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run the job here, with a broker in the same process, generated data and results on the screen",
		Long: "Dev needs no Kafka. It keeps the broker's data and the job's state in a folder, so that the next start goes on where this one ends; " +
			"settings of the brokers, TLS and logins are not used. Sources with fields get generated records.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.lines < 0 || o.history < 0 {
				return &exitError{code: exitUsage, err: errors.New("--lines and --history must not be negative; 0 shows all results, and generates no history")}
			}
			o.moved = !cmd.Flags().Changed("port")
			ctx, stop := untilStopped()
			defer stop()
			return newDev(a, o).run(ctx)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.load.Generate, "generate", nil, "generate records for a source, as in --generate clicks=500/s; may be repeated (default "+defaultRate+" for every JSON source with fields)")
	flags.StringVar(&o.load.Late, "late", "", "share of generated records that are late, and by how much, as in 5%:40s")
	flags.StringVar(&o.load.Duplicates, "duplicates", "", "share of generated records that are sent twice, as in 1%")
	flags.StringVar(&o.load.Skew, "skew", "", "how unequal the ids of generated records are, as in zipf:1.2")
	flags.DurationVar(&o.history, "history", 2*time.Minute, "event time that generated data begins with, so that windows close at once; 0 begins with now")
	flags.StringVar(&o.dataDir, "data-dir", ".millrace-dev", "folder of the broker's data and of the state; remove it to start over")
	flags.BoolVar(&o.watch, "watch", false, "restart the job when its files change")
	flags.IntVar(&o.port, "port", 9092, "port of the broker; 0 takes any free one, and so does the default when it is in use")
	flags.IntVar(&o.lines, "lines", 10, "results shown a second and sink; the others are counted; 0 shows all")
	return cmd
}

// dev is the broker with everything around it. The broker lives as long as dev, a session as long as one configuration.
type dev struct {
	app     *app // whose --set make the job use the broker
	opts    devOptions
	results *results
	broker  *devbroker.Broker
	seen    *progressShown
}

func newDev(a *app, o devOptions) *dev {
	return &dev{app: a, opts: o, results: newResults(a.stdout, o.lines), seen: newProgressShown()}
}

func (d *dev) run(ctx context.Context) error {
	if err := d.choosePort(); err != nil {
		return err
	}
	d.app = d.override(d.app)
	job, err := d.load()
	if err != nil {
		return err
	}
	if _, err := d.loads(job.Spec); err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	var changed <-chan struct{}
	if d.opts.watch {
		if changed, err = watchFiles(ctx, job.Files); err != nil {
			return err
		}
	}
	if d.broker, err = devbroker.Start(devbroker.Options{Port: d.opts.port, DataDir: filepath.Join(d.opts.dataDir, "kafka")}); err != nil {
		return err
	}
	defer d.broker.Close()
	created, err := d.createTopics(job.Spec)
	if err != nil {
		return err
	}
	d.banner(job, created)
	rebuilt, err := d.rebuild(ctx, job)
	if err != nil {
		return ended(ctx, err)
	}
	if rebuilt {
		d.results.note("the job has changed since the last start: " + anew)
	}
	if !d.opts.watch {
		return d.once(ctx, job)
	}
	return d.follow(ctx, job, changed)
}

// anew says what rebuild did.
const anew = "its state is built anew from the sources' first records, and results that are in the sinks come again"

// choosePort settles the broker's port before it starts: the job's settings name it.
func (d *dev) choosePort() error {
	if d.opts.port != 0 && !(d.opts.moved && taken(d.opts.port)) {
		return nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("find a free port for the development broker: %w", err)
	}
	d.opts.port = l.Addr().(*net.TCPAddr).Port
	return l.Close()
}

func taken(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return true
	}
	_ = l.Close() // it carried nothing
	return false
}

// override makes the job's settings those of development. What a flag sets stays as it is, except for where the broker
// and the state are.
func (d *dev) override(a *app) *app {
	own := *a
	var sets []string
	if a.logLevel == "" {
		sets = append(sets, "log.level=warn")
	}
	sets = append(sets, "log.format=console")
	sets = append(sets, a.sets...)
	own.sets = append(sets, "kafka.bootstrap_servers="+net.JoinHostPort("127.0.0.1", strconv.Itoa(d.opts.port)),
		"state.dir="+d.stateDir())
	return &own
}

func (d *dev) stateDir() string { return filepath.Join(d.opts.dataDir, "state") }

// load reads the job and takes away what only production has: logins, static membership, more than one broker.
func (d *dev) load() (*config.Config, error) {
	job, err := d.app.loadJob()
	if err != nil {
		return nil, err
	}
	k := &job.Settings.Kafka
	k.TLS, k.SASL, k.GroupInstanceID = config.TLS{}, config.SASL{}, ""
	job.Settings.State.Changelog.ReplicationFactor = -1
	return job, nil
}

// once runs the job until ctx ends or the job fails.
func (d *dev) once(ctx context.Context, job *config.Config) error {
	s, err := d.start(ctx, job)
	if err != nil {
		return ended(ctx, err)
	}
	select {
	case <-ctx.Done():
	case <-s.failed:
	}
	if err := s.stop(); err != nil {
		return fmt.Errorf("%w (the broker's data and the state are in %s; removing it starts over)", err, d.opts.dataDir)
	}
	d.goodbye()
	return nil
}

func (d *dev) goodbye() {
	d.results.note("stopped; millrace dev goes on from here, removing " + d.opts.dataDir + " starts over")
}
