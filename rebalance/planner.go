package rebalance

import (
	"encoding/json"
	"fmt"
	"slices"

	"millrace/record"
)

// Layout is the job's tasks and the partitions that belong to them.
type Layout struct {
	Shape string // identifies the job's subtopologies: members of a group must agree on it
	Tasks []TaskPartitions
}

// TaskPartitions are the input partitions of one task.
type TaskPartitions struct {
	Task       record.TaskID
	Partitions []record.TopicPartition
}

// TasksOf returns the tasks that own the partitions. A task whose partitions are not all there is not ours.
func (l *Layout) TasksOf(tps []record.TopicPartition) []record.TaskID {
	var tasks []record.TaskID
	for _, t := range l.Tasks {
		all := true
		for _, tp := range t.Partitions {
			all = all && slices.Contains(tps, tp)
		}
		if all {
			tasks = append(tasks, t.Task)
		}
	}
	return tasks
}

// Peer is a member of the group as the leader sees it.
type Peer struct {
	ID         string
	UserData   []byte
	Owned      []record.TopicPartition
	Generation int32 // in which Owned was valid; -1: not known
}

// userData is what a member tells the leader. A newer format must stay readable for older members: fields are added.
type userData struct {
	Version int      `json:"v"`
	Shape   string   `json:"shape"`
	Local   []string `json:"local,omitempty"` // tasks whose rows are on the member's disk
}

// EncodeUserData describes this member.
func (l *Layout) EncodeUserData(local []record.TaskID) []byte {
	u := userData{Version: 1, Shape: l.Shape}
	for _, t := range local {
		u.Local = append(u.Local, t.String())
	}
	b, err := json.Marshal(u)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return b
}

// Plan assigns the job's tasks to the peers, in partitions.
func (l *Layout) Plan(peers []Peer) (map[string][]record.TopicPartition, error) {
	var members []Member
	newest := int32(-1)
	for _, p := range peers {
		newest = max(newest, p.Generation)
	}
	for _, p := range peers {
		var u userData
		if err := json.Unmarshal(p.UserData, &u); err != nil {
			return nil, fmt.Errorf("member %s of the group is no millrace: %w", p.ID, err)
		}
		if u.Shape != l.Shape {
			return nil, fmt.Errorf("member %s runs another job (%s, ours is %s) under this application_id: stop one of them, or give it an application_id of its own", p.ID, u.Shape, l.Shape)
		}
		m := Member{ID: p.ID}
		if p.Generation == newest { // what was owned in an older generation may be another's now
			m.Owned = l.TasksOf(p.Owned)
		}
		for _, s := range u.Local {
			if t, err := record.ParseTaskID(s); err == nil {
				m.Local = append(m.Local, t)
			}
		}
		members = append(members, m)
	}
	var tasks []record.TaskID
	partitions := map[record.TaskID][]record.TopicPartition{}
	for _, t := range l.Tasks {
		tasks = append(tasks, t.Task)
		partitions[t.Task] = t.Partitions
	}
	assigned := Assign(members, tasks)
	Withhold(assigned, members)
	plan := map[string][]record.TopicPartition{}
	for id, ts := range assigned {
		plan[id] = []record.TopicPartition{}
		for _, t := range ts {
			plan[id] = append(plan[id], partitions[t]...)
		}
	}
	return plan, nil
}
