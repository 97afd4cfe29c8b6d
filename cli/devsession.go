package cli

import (
	"context"
	"errors"
	"sync"

	"millrace/config"
	"millrace/kafka"
)

// session is one configuration at work: the job, its generators and the readers of its results.
type session struct {
	failed chan struct{} // closed when a part ends by itself
	once   sync.Once

	generators, job, readers parts
	client                   *kafka.Client
}

// start brings the generated history into the topics and starts the parts. ctx only ends the start.
func (d *dev) start(ctx context.Context, job *config.Config) (*session, error) {
	loads, err := d.loads(job.Spec)
	if err != nil {
		return nil, err
	}
	if err := d.generateHistory(ctx, job.Spec, loads); err != nil {
		return nil, err
	}
	s := &session{failed: make(chan struct{})}
	if s.client, err = kafka.Connect(kafkaConfig(job.Settings, "dev")); err != nil {
		return nil, err
	}
	outputs, err := d.outputs(ctx, s.client, job)
	if err != nil {
		return nil, errors.Join(err, s.client.Close())
	}
	for _, o := range outputs {
		s.readers.run(s, func(ctx context.Context) error { return d.show(ctx, s.client, o) })
	}
	s.job.run(s, (&replica{app: d.app, job: job}).run)
	for _, load := range loads {
		s.generators.run(s, func(ctx context.Context) error { return d.generate(ctx, job.Spec, load) })
	}
	return s, nil
}

// stop ends the generators first, so that the job stops on an input that no longer grows, and the readers last, so that
// what the job committed at its end is shown. It returns what the parts failed with.
func (s *session) stop() error {
	return errors.Join(s.generators.stop(), s.job.stop(), s.readers.stop(), s.client.Close())
}

// parts are goroutines that are stopped together.
type parts struct {
	cancels []context.CancelFunc
	ended   []chan error
}

// run starts a part. It ends when its context does; when it ends earlier, the session has failed.
func (p *parts) run(s *session, work func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	end := make(chan error, 1)
	p.cancels, p.ended = append(p.cancels, cancel), append(p.ended, end)
	go func() {
		end <- work(ctx)
		if ctx.Err() == nil {
			s.once.Do(func() { close(s.failed) })
		}
	}()
}

func (p *parts) stop() error {
	for _, cancel := range p.cancels {
		cancel()
	}
	var errs []error
	for _, end := range p.ended {
		errs = append(errs, <-end)
	}
	return errors.Join(errs...)
}
