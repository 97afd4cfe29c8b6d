package driver

import (
	"context"
	"errors"
	"fmt"

	"millrace/eos"
	"millrace/record"
	"millrace/store"
	"millrace/task"
)

// Restart ends the process in the middle of the epoch and starts it again: the tasks go on from what is committed. With
// lost the disk is gone, too, and everything comes from the changelogs.
func (d *Driver) Restart(lost bool) error {
	if d.err != nil {
		return d.err
	}
	if lost {
		clear(d.engines)
	}
	return d.recover(nil)
}

// Rebalance gives every task up, with a clean end for its state but without a commit, and takes all of them again.
func (d *Driver) Rebalance() error {
	if d.err != nil {
		return d.err
	}
	for id, state := range d.states() {
		if err := task.CloseState(id, state, d.options()); err != nil {
			return d.fail(err)
		}
	}
	return d.recover(nil)
}

// AbortEpoch commits an epoch that fails after everything of it was written. The tasks drop what they did and go on with
// the states that they have.
func (d *Driver) AbortEpoch() error {
	parts, err := d.freeze()
	if err != nil {
		return err
	}
	_, err = eos.Commit(context.Background(), d.transaction(parts, true), d.epoch(parts))
	if !errors.Is(err, errAborted) {
		return d.fail(fmt.Errorf("an epoch that was to be aborted ended with %w", err))
	}
	return d.recover(d.states())
}

// CrashAfterCommit ends the process between the commit of an epoch and the moment at which the tasks hear of it.
func (d *Driver) CrashAfterCommit() error {
	parts, err := d.freeze()
	if err != nil {
		return err
	}
	if _, err := eos.Commit(context.Background(), d.transaction(parts, false), d.epoch(parts)); err != nil {
		return d.fail(err)
	}
	for _, p := range parts {
		d.tallies.add(p.Tallies)
	}
	return d.recover(nil)
}

// states takes the tasks' states away from them.
func (d *Driver) states() map[record.TaskID]*store.State {
	states := map[record.TaskID]*store.State{}
	for _, w := range d.workers {
		states[w.ID()] = w.TakeState()
	}
	return states
}

// recover is the one way back to work: the brokers clean up meanwhile, and all tasks start anew.
func (d *Driver) recover(kept map[record.TaskID]*store.State) error {
	for _, sub := range d.plan.Subtopologies {
		for _, step := range sub.Stores {
			for p := range d.partitions {
				d.cluster.log(record.TopicPartition{Topic: d.plan.ChangelogTopic(step), Partition: p}).compact()
			}
		}
	}
	if err := d.start(kept); err != nil {
		return err
	}
	return d.work()
}
