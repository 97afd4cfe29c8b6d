package cli

import (
	"context"

	"millrace/changelog"
	"millrace/kafka"
	"millrace/record"
	"millrace/topology"
)

// guardLookBack is how many offsets from a changelog's end a progress record is looked for: it is the last record of each
// epoch, followed by a marker or two.
const guardLookBack = 64

// samePlan refuses to start on state that was written under another plan. Each task checks its own rows as well; but the
// tasks in front of a repartition topic have none, and would fill it with rows that the old plan cannot read any more,
// should the change be undone.
func samePlan(ctx context.Context, c *kafka.Client, plan *topology.Plan, t topics) error {
	for _, sub := range plan.Subtopologies {
		for _, step := range sub.Stores {
			p, err := lastProgress(ctx, c, plan.ChangelogTopic(step), widest(sub, t))
			if err != nil {
				return err
			}
			if p == nil {
				continue
			}
			if err := plan.Continues([]string{step}, p.Fingerprints); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastProgress reads the newest progress record of the first partition that has one near its end.
func lastProgress(ctx context.Context, c *kafka.Client, topic string, partitions int32) (*changelog.Progress, error) {
	for p := range partitions {
		tp := record.TopicPartition{Topic: topic, Partition: p}
		end, err := c.EndOffset(ctx, tp)
		if err != nil {
			return nil, err
		}
		start, err := c.StartOffset(ctx, tp)
		if err != nil {
			return nil, err
		}
		progress, err := progressNear(ctx, c, tp, max(start, end-guardLookBack), end)
		if progress != nil || err != nil {
			return progress, err
		}
	}
	return nil, nil
}

func progressNear(ctx context.Context, c *kafka.Client, tp record.TopicPartition, from, end record.Offset) (*changelog.Progress, error) {
	if from >= end {
		return nil, nil
	}
	r, err := c.NewReader(tp)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var newest *changelog.Progress
	for from < end {
		b, err := r.Read(ctx, from)
		if err != nil {
			return nil, err
		}
		if b.Next == from {
			break // an open transaction; what lies before it was read
		}
		from = b.Next
		p, err := changelog.LastProgress(b)
		if err != nil {
			return nil, err
		}
		if p != nil {
			newest = p
		}
	}
	return newest, nil
}
