package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"millrace/config"
	"millrace/formats"
	"millrace/kafka"
	"millrace/rebalance"
	"millrace/record"
	"millrace/topology"
)

// topics is what the cluster has of the topics that a job needs.
type topics struct{ partitions map[string]int32 }

func (t topics) of(topic string) int32 { return t.partitions[topic] }

// learnKeys answers the plan's questions about undeclared keys: from the internal topics of an earlier start if there
// are any, otherwise from the first record that the source has. It waits for one; a source without records has nothing
// to do anyway. Every record is checked against the answer later, so a wrong one cannot give a wrong number.
func learnKeys(ctx context.Context, c *kafka.Client, plan *topology.Plan, say func(step string, keyed bool, from string)) (map[string]bool, error) {
	keyed := map[string]bool{}
	for _, q := range plan.Unknown {
		if known, answered := keyed[q.Step]; answered && !known {
			continue
		}
		shuffle, log := plan.RepartitionTopic(q.Step), plan.ChangelogTopic(q.Step)
		earlier, err := c.Existing([]string{shuffle, log})
		if err != nil {
			return nil, err
		}
		if earlier[shuffle] > 0 {
			keyed[q.Step] = false
			say(q.Step, false, "the repartition topic of an earlier start")
			continue
		}
		if earlier[log] > 0 {
			keyed[q.Step] = true
			say(q.Step, true, "the changelog of an earlier start")
			continue
		}
		answer, at, err := firstRecord(ctx, c, q)
		if err != nil {
			return nil, err
		}
		keyed[q.Step] = answer // a step of several sources is keyed only if all of them say so
		say(q.Step, answer, at)
	}
	return keyed, nil
}

// firstRecord waits for the first record of the question's topic that answers it: of the lowest partition that has any.
func firstRecord(ctx context.Context, c *kafka.Client, q *topology.KeyQuestion) (matches bool, at string, err error) {
	n, err := c.Partitions(q.Topic)
	if err != nil {
		return false, "", fmt.Errorf("source %s: %w", q.Source, err)
	}
	next := make([]record.Offset, n)
	readers := make([]*kafka.Reader, n)
	for p := range n {
		tp := record.TopicPartition{Topic: q.Topic, Partition: p}
		if next[p], err = c.StartOffset(ctx, tp); err != nil {
			return false, "", err
		}
		if readers[p], err = c.NewReader(tp); err != nil {
			return false, "", err
		}
		defer readers[p].Close()
	}
	pause := time.NewTicker(100 * time.Millisecond)
	defer pause.Stop()
	for {
		for p, r := range readers {
			b, err := r.Read(ctx, next[p])
			if err != nil {
				return false, "", err
			}
			next[p] = b.Next
			for i := range b.Records {
				if matches, err := q.Matches(formats.ByName{}, &b.Records[i]); err == nil {
					return matches, fmt.Sprintf("%s@%d", b.From, b.Records[i].Offset), nil
				}
			}
		}
		select {
		case <-ctx.Done():
			return false, "", context.Cause(ctx)
		case <-pause.C:
		}
	}
}

// spreading is how long a topic that was created a moment ago may be unknown to the broker that is asked.
const spreading = 3 * time.Second

// findUsers returns the partitions of the users' topics, all of which must exist.
func findUsers(ctx context.Context, look func([]string) (map[string]int32, error), names []string, patience time.Duration) (map[string]int32, error) {
	pause := time.NewTicker(100 * time.Millisecond)
	defer pause.Stop()
	for begun := time.Now(); ; {
		found, err := look(names)
		if err != nil {
			return nil, err
		}
		missing := slices.IndexFunc(names, func(name string) bool { return found[name] == 0 })
		switch {
		case missing < 0:
			return found, nil
		case time.Since(begun) >= patience:
			return nil, fmt.Errorf("topic %s does not exist: the job reads or writes it and does not create it; kafka-topics.sh --create --topic %s --partitions N does", names[missing], names[missing])
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-pause.C:
		}
	}
}

// findTopics checks the users' topics, creates the internal ones where they are missing, and returns the job's tasks.
func findTopics(ctx context.Context, c *kafka.Client, plan *topology.Plan, s config.Settings) (topics, *rebalance.Layout, error) {
	t := topics{map[string]int32{}}
	users := append(plan.SourceTopics(), plan.OutputTopics()...)
	var err error
	if t.partitions, err = findUsers(ctx, c.Existing, users, spreading); err != nil {
		return t, nil, err
	}
	if _, err := c.Partitions(users[0]); err != nil { // the client's later look-ups need one topic that it knows
		return t, nil, err
	}
	layout := &rebalance.Layout{Shape: plan.Shape()}
	repartitions := plan.Repartitions()
	for range plan.Subtopologies { // a repartition topic is as wide as the tasks that write it, which may depend on another
		for _, r := range repartitions {
			if n := widest(plan.Subtopologies[r.From], t); n > 0 {
				t.partitions[r.Topic] = n
			}
		}
	}
	if err := sameCounts(c, plan, t, s); err != nil {
		return t, nil, err
	}
	for _, spec := range internalTopics(plan, t, int16(s.State.Changelog.ReplicationFactor)) {
		if _, err := c.EnsureTopic(ctx, spec); err != nil {
			return t, nil, err
		}
	}
	for _, sub := range plan.Subtopologies {
		for p := range widest(sub, t) {
			tp := rebalance.TaskPartitions{Task: record.TaskID{Subtopology: sub.Number, Partition: p}}
			for _, in := range sub.Inputs {
				if p < t.of(in.Topic) {
					tp.Partitions = append(tp.Partitions, record.TopicPartition{Topic: in.Topic, Partition: p})
				}
			}
			layout.Tasks = append(layout.Tasks, tp)
		}
	}
	return t, layout, sameWidth(plan, t)
}

// widest is the number of a subtopology's tasks: the partitions of its widest input; 0 while one is not known.
func widest(sub *topology.Subtopology, t topics) int32 {
	n := int32(0)
	for _, in := range sub.Inputs {
		if t.of(in.Topic) == 0 {
			return 0
		}
		n = max(n, t.of(in.Topic))
	}
	return n
}

// internalTopics lists the topics that belong to the job alone. Repartition topics keep everything until it has been
// read and purged; changelogs are compacted and never deleted from, because record times say nothing about what is in use.
func internalTopics(plan *topology.Plan, t topics, replication int16) []kafka.TopicSpec {
	var specs []kafka.TopicSpec
	for _, r := range plan.Repartitions() {
		specs = append(specs, kafka.TopicSpec{Name: r.Topic, Partitions: t.of(r.Topic), Replication: replication,
			Config: map[string]string{"cleanup.policy": "delete", "retention.ms": "-1", "segment.bytes": "52428800"}})
	}
	for _, sub := range plan.Subtopologies {
		for _, step := range sub.Stores {
			specs = append(specs, kafka.TopicSpec{Name: plan.ChangelogTopic(step), Partitions: widest(sub, t), Replication: replication,
				Config: map[string]string{"cleanup.policy": "compact"}})
		}
	}
	return specs
}

// sameWidth refuses stateful subtopologies whose inputs have different numbers of partitions: the same key would be in
// different tasks.
func sameWidth(plan *topology.Plan, t topics) error {
	for _, sub := range plan.Subtopologies {
		if len(sub.Stores) == 0 {
			continue
		}
		for _, in := range sub.Inputs[1:] {
			if a, b := sub.Inputs[0].Topic, in.Topic; t.of(a) != t.of(b) {
				return fmt.Errorf("step %s groups %s with %d partitions and %s with %d without a repartition between: the same key would be counted apart; "+
					"give the topics the same number of partitions, or leave out key: on the sources so that the step repartitions", sub.Stores[0], a, t.of(a), b, t.of(b))
			}
		}
	}
	return nil
}

// writers tells how many tasks write to a step's repartition topic.
func writers(plan *topology.Plan, layout *rebalance.Layout) func(step string) int32 {
	return func(step string) int32 {
		repartitions := plan.Repartitions()
		i := slices.IndexFunc(repartitions, func(r topology.Repartition) bool { return r.Step == step })
		n := int32(0)
		for _, t := range layout.Tasks {
			if t.Task.Subtopology == repartitions[i].From {
				n++
			}
		}
		return n
	}
}
