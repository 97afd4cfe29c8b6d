package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"millrace/config"
	"millrace/devbroker"
)

// builtPlan is what the data folder notes about the job whose state it holds.
type builtPlan struct {
	Application string   `json:"application"`
	Shape       string   `json:"shape"`
	Topics      []string `json:"internal_topics"`
}

// rebuild makes room for a job whose plan is not the one that the state was built by: a job in production would be
// refused, here the state is built anew from the records that the sources still have. It tells whether it did.
func (d *dev) rebuild(ctx context.Context, job *config.Config) (rebuilt bool, err error) {
	plan, err := planOf(job)
	if err != nil {
		return false, err
	}
	next := builtPlan{Application: plan.ApplicationID, Shape: plan.Shape()}
	for _, sub := range plan.Subtopologies {
		for _, step := range sub.Stores {
			next.Topics = append(next.Topics, plan.ChangelogTopic(step))
		}
	}
	for _, r := range plan.Repartitions() {
		next.Topics = append(next.Topics, r.Topic)
	}
	file := filepath.Join(d.opts.dataDir, "plan.json")
	var last builtPlan
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &last)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // the first start
	case err != nil:
		return false, fmt.Errorf("%s: %w; remove %s to start over", file, err, d.opts.dataDir)
	case last.Application == next.Application && last.Shape != next.Shape:
		if err := d.forget(ctx, last); err != nil {
			return false, err
		}
		rebuilt = true
	}
	if text, err = json.Marshal(next); err != nil {
		return rebuilt, err
	}
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return rebuilt, err
	}
	return rebuilt, os.Rename(file+".new", file) // in one step: a process that dies here leaves the old note or the new one
}

// forget removes what the job keeps about itself: state, changelogs, repartition topics, offsets. Sources and results stay.
func (d *dev) forget(ctx context.Context, p builtPlan) error {
	if err := os.RemoveAll(filepath.Join(d.stateDir(), p.Application)); err != nil {
		return fmt.Errorf("remove the state of the former job: %w", err)
	}
	for _, topic := range p.Topics {
		if d.broker.EndOffset(topic, 0) < 0 {
			continue
		}
		if err := d.broker.DeleteTopic(topic); err != nil {
			return err
		}
	}
	client, err := devbroker.NewClient(d.broker.Addr())
	if err != nil {
		return err
	}
	defer client.Close()
	return client.DeleteGroup(ctx, p.Application)
}
