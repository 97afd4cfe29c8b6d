package task

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"millrace/changelog"
	"millrace/crash"
	"millrace/record"
	"millrace/store"
	"millrace/topology"
)

// Start makes a task ready to run: its rows as of the committed offsets, its clock, its positions. It is the same after
// a start, a rebalance, an aborted epoch and a crash. kept is the state that the task had in this process before, or nil;
// Start takes it over, and closes it when it fails.
//
// The caller has fenced the former owner: either it is the same transactional id, or the group has evicted it. Offsets
// are read first, once no transaction is pending on them, and the changelog's end after that: a transaction that was
// accepted earlier was flushed before its offsets were, hence lies below that end.
func Start(ctx context.Context, id record.TaskID, o Options, kept *store.State) (*Task, error) {
	t := newTask(id, o)
	offsets, err := o.Cluster.StableOffsets(ctx, t.partitions())
	crash.At("start.offsets")
	if err == nil {
		err = t.openState(kept)
	}
	if err != nil {
		if t.state == nil && kept != nil {
			_ = kept.Close() // the error that we report is the cause
		}
		return nil, err
	}
	if err := t.start(ctx, offsets); err != nil {
		if s := t.TakeState(); s != nil {
			_ = s.Close() // the error that we report is the cause
		}
		return nil, fmt.Errorf("start task %s: %w", id, err)
	}
	crash.At("start.running")
	return t, nil
}

func (t *Task) openState(kept *store.State) error {
	names := t.sub.Stores
	if len(names) == 0 {
		return nil
	}
	if kept != nil {
		kept.Abort()
		kept.SetCacheBytes(t.options.CacheBytes)
		t.state = kept
		return nil
	}
	engine, found, err := t.options.OpenEngine(t.id, names)
	if err != nil {
		return err
	}
	if found.Damaged != "" {
		t.options.Warn("MR3002", "the rows on disk were damaged and have been moved aside; they are restored from the changelog", "task", t.id.String(), "to", found.Damaged, "cause", found.Cause)
	}
	t.storeID = found.StoreID
	t.state, err = store.Open(engine, store.Options{Stores: names, CacheBytes: t.options.CacheBytes, FlushInterval: t.options.FlushInterval})
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	return nil
}

func (t *Task) start(ctx context.Context, offsets map[record.TopicPartition]record.Committed) error {
	progress, err := t.restore(ctx)
	if err != nil {
		return err
	}
	for i := range t.inputs {
		in := &t.inputs[i]
		if !in.present {
			continue
		}
		if in.position, err = t.position(ctx, in, offsets[in.tp], progress); err != nil {
			return err
		}
		// Where a source begins that is read from its end must not move with every start before the first record.
		t.dirty = t.dirty || in.latest && offsets[in.tp].Next < 0
	}
	if err := t.build(); err != nil {
		return err
	}
	return t.restoreClock(offsets, progress)
}

// restore brings the rows up to the changelogs' ends, and returns the progress that they stand for.
func (t *Task) restore(ctx context.Context) (*changelog.Progress, error) {
	if t.state == nil {
		return nil, nil
	}
	logs, err := t.lookAtChangelogs(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.discardOutdated(ctx, logs); err != nil {
		return nil, err
	}
	newest, err := t.noted()
	if err != nil {
		return nil, err
	}
	for i := range t.sub.Stores {
		p, err := t.restoreStore(ctx, i, logs[i])
		if err != nil {
			return nil, err
		}
		if p != nil && (newest == nil || p.Epoch >= newest.Epoch) {
			newest = p
		}
	}
	if newest == nil {
		return nil, nil
	}
	if err := t.options.Plan.Continues(t.sub.Stores, newest.Fingerprints); err != nil {
		return nil, err
	}
	note, err := newest.Encode()
	if err != nil {
		return nil, err
	}
	t.state.SetNote(note)
	t.epoch = newest.Epoch
	return newest, nil
}

func (t *Task) restoreStore(ctx context.Context, i int, log changelogEnd) (*changelog.Progress, error) {
	o, name := t.options, t.sub.Stores[i]
	from := t.state.Position(i)
	reused := t.state.Reused(i) > 0 || from > 0
	begin := o.Clock()
	o.RestoreStarted(t.id, name, from, log.end, reused)
	result, err := t.replay(ctx, i, from, log)
	if err != nil {
		o.RestoreGivenUp(t.id, name)
		return nil, fmt.Errorf("restore %s: %w", name, err)
	}
	o.Restored(t.id, name, reused, result.Records, o.Clock().Sub(begin))
	return result.Progress, nil
}

func (t *Task) replay(ctx context.Context, i int, from record.Offset, log changelogEnd) (changelog.Restored, error) {
	reader, done, err := t.options.Cluster.Changelog(log.tp)
	if err != nil {
		return changelog.Restored{}, err
	}
	defer done()
	return changelog.Restore(ctx, reader, &restoring{task: t, store: i, end: log.end, reported: t.options.Clock()}, from, log.end)
}

// restoring puts restored rows into one of the task's stores. Rows go to disk in large pieces as the cache fills.
type restoring struct {
	task     *Task
	store    int
	end      record.Offset
	reported time.Time
}

func (r *restoring) Apply(segment int64, key, value []byte) {
	r.task.state.Apply(r.store, segment, key, value)
}

func (r *restoring) Reached(next record.Offset) error {
	crash.At("start.restore")
	s, o, now := r.task.state, r.task.options, r.task.options.Clock()
	s.SetPosition(r.store, next, now)
	if now.Sub(r.reported) >= time.Second {
		r.reported = now
		o.RestoreProgress(r.task.id, r.task.sub.Stores[r.store], next, r.end)
	}
	if s.CacheBytes() <= o.CacheBytes || !s.FlushDue(now) {
		return nil
	}
	stats, err := s.Flush(now)
	if err == nil {
		o.Flushed(r.task.id, stats.Rows, int64(stats.Bytes), stats.Took)
	}
	return err
}

// discardOutdated empties the store when the changelog cannot bring it up to date: it is ahead of the changelog, the
// changelog begins after it, or tombstones that it needs may be gone.
func (t *Task) discardOutdated(ctx context.Context, logs []changelogEnd) error {
	noted, err := t.noted()
	if err != nil {
		return err
	}
	for i := range t.sub.Stores {
		why, err := t.outdated(ctx, i, logs[i], noted)
		if err != nil {
			return err
		}
		if why == "" {
			continue
		}
		t.options.Warn("MR3003", "the rows on disk cannot be used and are restored from the changelog", "task", t.id.String(), "store", t.sub.Stores[i], "cause", why)
		if err := t.state.Close(); err != nil {
			return err
		}
		t.state = nil
		if err := t.options.Wipe(t.id); err != nil {
			return err
		}
		return t.openState(nil)
	}
	return nil
}

// changelogEnd is a store's changelog as a start finds it.
type changelogEnd struct {
	tp  record.TopicPartition
	end record.Offset // nobody writes behind it before the task runs
}

// lookAtChangelogs asks which topics the changelogs are, and how far they reach.
func (t *Task) lookAtChangelogs(ctx context.Context) ([]changelogEnd, error) {
	t.topicIDs = make([]string, len(t.sub.Stores))
	logs := make([]changelogEnd, len(t.sub.Stores))
	for i := range logs {
		tp := t.changelog(i)
		var err error
		if t.topicIDs[i], err = t.options.Cluster.TopicID(ctx, tp); err != nil {
			return nil, err
		}
		end, err := t.options.Cluster.EndOffset(ctx, tp)
		if err != nil {
			return nil, err
		}
		logs[i] = changelogEnd{tp, end}
	}
	return logs, nil
}

// noted is the progress that the rows on disk stand for; nil if there is none.
func (t *Task) noted() (*changelog.Progress, error) {
	note := t.state.Note()
	if len(note) == 0 {
		return nil, nil
	}
	return changelog.ParseProgress(note)
}

// outdated tells why the changelog cannot bring a store up to date; empty if it can. noted is what its rows stand for.
func (t *Task) outdated(ctx context.Context, i int, log changelogEnd, noted *changelog.Progress) (why string, err error) {
	position, tp := t.state.Position(i), log.tp
	if position == 0 {
		return "", nil
	}
	if noted != nil {
		if was := noted.Changelogs[t.sub.Stores[i]]; was != "" && t.topicIDs[i] != "" && was != t.topicIDs[i] {
			return fmt.Sprintf("they belong to an earlier topic of the name %s, which was made anew", tp.Topic), nil
		}
	}
	if position > log.end {
		return fmt.Sprintf("they are at offset %d of %s, which ends at %d: the topic has lost records or was made anew", position, tp, log.end), nil
	}
	start, err := t.options.Cluster.StartOffset(ctx, tp)
	if err != nil {
		return "", err
	}
	if start > position {
		return fmt.Sprintf("they are at offset %d of %s, which begins at %d", position, tp, start), nil
	}
	written := t.state.Written()
	keep := t.options.Cluster.TombstoneRetention(ctx, tp.Topic)
	if age := t.options.Clock().Sub(written); !written.IsZero() && keep > 0 && age > keep-keep/10 {
		return fmt.Sprintf("they were written %s ago and %s keeps tombstones for %s: deleted rows would come back", age.Round(time.Second), tp.Topic, keep), nil
	}
	return "", nil
}

// position decides where to go on reading an input: what the group has committed must be what the rows stand for.
func (t *Task) position(ctx context.Context, in *input, committed record.Committed, p *changelog.Progress) (record.Offset, error) {
	stated := record.Offset(-1)
	if p != nil {
		for _, o := range p.Inputs {
			if o.Topic == in.tp.Topic && o.Partition == in.tp.Partition {
				stated = o.Next
			}
		}
	}
	switch {
	case committed.Next < 0 && stated >= 0:
		t.options.Warn("MR3004", "the group has no offset where the state has one, probably expired; the state's is used", "partition", in.tp.String(), "offset", stated)
		return stated, nil
	case committed.Next < 0:
		if in.latest {
			return t.options.Cluster.EndOffset(ctx, in.tp)
		}
		return t.options.Cluster.StartOffset(ctx, in.tp)
	case t.state == nil, stated == committed.Next:
		return committed.Next, nil
	case !t.options.ExactlyOnce && stated > committed.Next:
		return committed.Next, nil // offsets follow the state without a transaction: what lies between is done again
	case t.options.TakeProgress:
		if stated < 0 {
			stated = committed.Next
		}
		t.options.Warn("MR3005", "the group's offset is not the one that the state stands for; offsets_policy is progress", "partition", in.tp.String(), "group", committed.Next, "used", stated)
		return stated, nil
	}
	return 0, fmt.Errorf("%s: the group's offset is %d, but the state stands for %d (-1: none): offsets were moved, or a changelog was lost; going on would give wrong numbers. "+
		"Set the offset back, or run with --set state.offsets_policy=progress to go on from the state's offset, or start over under a new application_id", in.tp, committed.Next, stated)
}

// restoreClock sets event time to what it was when the offsets were committed.
func (t *Task) restoreClock(offsets map[record.TopicPartition]record.Committed, p *changelog.Progress) error {
	clock := t.instance.Clock()
	if p != nil {
		if err := clock.Restore(p.Clock); err != nil {
			return err
		}
	}
	for i := range t.inputs {
		if note := offsets[t.inputs[i].tp].Metadata; note != "" && t.inputs[i].present {
			if encoded, err := base64.RawStdEncoding.DecodeString(note); err == nil {
				if err := clock.Restore(encoded); err != nil {
					return fmt.Errorf("%s: %w", t.inputs[i].tp, err)
				}
			}
		}
	}
	t.instance.Reopen()
	t.told = clock.Encode(nil)
	return nil
}

// build makes the operators, over the restored state.
func (t *Task) build() error {
	o := t.options
	present := make([]bool, len(t.inputs))
	for i := range t.inputs {
		present[i] = t.inputs[i].present
	}
	var err error
	t.instance, err = t.sub.Build(topology.Env{Task: t.id, Formats: o.Formats, Store: func(i int) topology.Store { return rows{t.state.Store(i)} },
		Scratch:    t.scratch,
		Partitions: o.Partitions, Present: present, Writers: o.Writers, MaxRecordBytes: o.MaxRecordBytes})
	return err
}

// scratch makes a store for rows that live within an epoch.
func (t *Task) scratch() (topology.Store, func()) {
	s := store.NewScratch()
	t.scratches = append(t.scratches, s)
	return rows{s.Store}, s.Empty
}

// rows is a store as the operators know it.
type rows struct{ *store.Store }

func (r rows) Keys(segments ...int64) (topology.KeySet, error) { return r.Store.Keys(segments...) }
