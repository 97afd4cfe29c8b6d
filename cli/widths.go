package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"millrace/config"
	"millrace/kafka"
	"millrace/topology"
)

// sameCounts refuses to go on when an internal topic of an earlier start has another number of partitions than the job
// would make now: the records of a key would be in another task than its state. It looks at all of them before any is
// created, so that a refused start leaves nothing behind.
func sameCounts(c *kafka.Client, plan *topology.Plan, t topics, s config.Settings) error {
	specs := internalTopics(plan, t, -1)
	names := make([]string, len(specs))
	for i, spec := range specs {
		names[i] = spec.Name
	}
	found, err := c.Existing(names)
	if err != nil {
		return err
	}
	for _, spec := range specs {
		if n := found[spec.Name]; n != 0 && n != spec.Partitions {
			return countChanged(spec, n, inputsOf(plan, t, spec.Name), s)
		}
	}
	return nil
}

// countChanged says what was found and what to do about it. The consumer group belongs to the recipe: offsets without the
// state that they stand for are refused as well.
func countChanged(spec kafka.TopicSpec, before int32, inputs []string, s config.Settings) error {
	app := s.ApplicationID
	return fmt.Errorf("topic %s has %d partitions, and internal topic %s was made with %d: the partition count of an input has changed, or another job has the application_id %s; "+
		"the records of a key would be in another task than its state. To start over with %d partitions, give the job a new application_id; or stop all replicas, delete the topics with the prefix %s-, "+
		"the consumer group %s and the folder %s of every replica. Either way the job reads its sources from where start: says, and writes its results again",
		strings.Join(inputs, ", "), spec.Partitions, spec.Name, before, app, spec.Partitions, app, app, filepath.Join(s.State.Dir, app))
}

// inputsOf lists the sources' topics that make an internal topic as wide as it is.
func inputsOf(plan *topology.Plan, t topics, internal string) []string {
	for _, r := range plan.Repartitions() {
		if r.Topic == internal {
			return widestInputs(plan, t, plan.Subtopologies[r.From])
		}
	}
	for _, sub := range plan.Subtopologies {
		for _, step := range sub.Stores {
			if plan.ChangelogTopic(step) == internal {
				return widestInputs(plan, t, sub)
			}
		}
	}
	return nil
}

func widestInputs(plan *topology.Plan, t topics, sub *topology.Subtopology) []string {
	var inputs []string
	users := plan.SourceTopics()
	for _, in := range sub.Inputs {
		switch {
		case t.of(in.Topic) < widest(sub, t):
		case slices.Contains(users, in.Topic):
			inputs = append(inputs, in.Topic)
		default:
			inputs = append(inputs, inputsOf(plan, t, in.Topic)...)
		}
	}
	return inputs
}
