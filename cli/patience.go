package cli

import (
	"context"
	"slices"
	"time"

	"millrace/kafka"
	"millrace/topology"
)

// patiently repeats what fails because the brokers are away: a replica that starts before its brokers, or while they
// restart, is no reason to exit.
func (r *replica) patiently(ctx context.Context, attempt func() error) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := attempt()
		if err == nil || !kafka.Transient(err) {
			return err
		}
		r.obs.Disconnected(err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// watchPartitions tells when a topic that the job reads gets more partitions: the keys of its records
// move, so the job must not simply go on with them. It works on with the partitions that it knows.
func (r *replica) watchPartitions(ctx context.Context, plan *topology.Plan, known topics) {
	topics := slices.Sorted(slices.Values(plan.SourceTopics()))
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		found, err := r.client.Existing(topics)
		if err != nil {
			continue // the brokers' absence is told elsewhere
		}
		for _, topic := range topics {
			if n := found[topic]; n != known.of(topic) {
				r.obs.Warn("MR2011", "a topic's number of partitions has changed; records of the new partitions are not read. "+
					"A stateless job takes them up at its next start; a job with state needs a new application_id, or its internal topics, consumer group and state directories deleted while all replicas are stopped",
					"topic", topic, "partitions", n, "known", known.of(topic))
			}
		}
	}
}
