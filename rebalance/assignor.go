// Package rebalance decides who works on what, and turns what the group decides into tasks that start and stop. The
// Manager is the one place where tasks, epochs and membership meet.
package rebalance

import (
	"cmp"
	"slices"

	"millrace/record"
)

// Member is what the plan knows of a replica.
type Member struct {
	ID    string
	Owned []record.TaskID // works on them now
	Local []record.TaskID // has their rows on its disk
}

// Assign distributes the tasks evenly: every member gets the same number, give or take one, and the tasks of each
// subtopology are spread likewise as far as that allows. Within these bounds a task stays with its owner; a task
// without one goes to a member that has its rows, otherwise to the one with the least. The same arguments give the same
// plan, in whatever order they come.
func Assign(members []Member, tasks []record.TaskID) map[string][]record.TaskID {
	p := newPlan(members, tasks)
	p.keepOwned()
	p.place(func(m *load, t record.TaskID) bool { return slices.Contains(m.member.Local, t) })
	p.place(func(*load, record.TaskID) bool { return true })
	result := map[string][]record.TaskID{}
	for _, m := range p.loads {
		slices.SortFunc(m.tasks, record.TaskID.Compare)
		result[m.member.ID] = m.tasks
	}
	return result
}

type load struct {
	member *Member
	tasks  []record.TaskID
	quota  int
}

type plan struct {
	loads []*load
	tasks []record.TaskID // not yet placed
}

func newPlan(members []Member, tasks []record.TaskID) *plan {
	p := &plan{tasks: slices.Clone(tasks)}
	slices.SortFunc(p.tasks, record.TaskID.Compare)
	for i := range members {
		p.loads = append(p.loads, &load{member: &members[i]})
	}
	floor := len(tasks) / max(len(members), 1)
	// Who works on more than the others' share may keep one more, so that fewer tasks move; then who has most to gain.
	owned := map[record.TaskID]bool{}
	for _, m := range members {
		for _, t := range m.Owned {
			owned[t] = true
		}
	}
	slices.SortFunc(p.loads, func(a, b *load) int {
		return cmp.Or(cmp.Compare(b.surplus(floor), a.surplus(floor)), cmp.Compare(b.claims(owned), a.claims(owned)), cmp.Compare(a.member.ID, b.member.ID))
	})
	for i, l := range p.loads {
		l.quota = floor
		if i < len(tasks)%len(members) {
			l.quota++
		}
	}
	return p
}

// surplus is 1 for a member that can keep what it works on only with a share above the floor.
func (l *load) surplus(floor int) int { return min(max(len(l.member.Owned)-floor, 0), 1) }

// claims counts what the member works on and what only it can take up again without a restore: a member that was just
// restarted owns nothing.
func (l *load) claims(owned map[record.TaskID]bool) int {
	n := len(l.member.Owned)
	for _, t := range l.member.Local {
		if !owned[t] {
			n++
		}
	}
	return n
}

// keepOwned leaves tasks with their owners up to their quotas, the tasks of each subtopology evenly.
func (p *plan) keepOwned() {
	for _, l := range p.loads {
		owned := slices.Clone(l.member.Owned)
		slices.SortFunc(owned, record.TaskID.Compare)
		for len(l.tasks) < l.quota {
			i := slices.IndexFunc(owned, func(t record.TaskID) bool {
				return slices.Contains(p.tasks, t) && l.of(t.Subtopology) < p.fair(t.Subtopology)
			})
			if i < 0 {
				i = slices.IndexFunc(owned, func(t record.TaskID) bool { return slices.Contains(p.tasks, t) })
			}
			if i < 0 {
				break
			}
			l.tasks = append(l.tasks, owned[i])
			p.remove(owned[i])
			owned = slices.Delete(owned, i, i+1)
		}
	}
}

// fair is a member's share of a subtopology's tasks, rounded up.
func (p *plan) fair(subtopology int) int {
	n := 0
	for _, t := range p.tasks {
		if t.Subtopology == subtopology {
			n++
		}
	}
	for _, l := range p.loads {
		n += l.of(subtopology)
	}
	return (n + len(p.loads) - 1) / len(p.loads)
}

func (l *load) of(subtopology int) int {
	n := 0
	for _, t := range l.tasks {
		if t.Subtopology == subtopology {
			n++
		}
	}
	return n
}

func (p *plan) remove(t record.TaskID) {
	p.tasks = slices.DeleteFunc(p.tasks, func(x record.TaskID) bool { return x == t })
}

// place gives each waiting task to the least loaded member that suits and has room.
func (p *plan) place(suits func(*load, record.TaskID) bool) {
	for _, t := range slices.Clone(p.tasks) {
		var best *load
		for _, l := range p.loads {
			if len(l.tasks) >= l.quota || !suits(l, t) {
				continue
			}
			if best == nil || cmp.Or(cmp.Compare(l.of(t.Subtopology), best.of(t.Subtopology)), cmp.Compare(len(l.tasks), len(best.tasks)), cmp.Compare(l.member.ID, best.member.ID)) < 0 {
				best = l
			}
		}
		if best != nil {
			best.tasks = append(best.tasks, t)
			p.remove(t)
		}
	}
}

// Withhold takes tasks out of a plan that another member still owns: its owner gives them up first and joins again, and
// they are assigned then (KIP-429).
func Withhold(assigned map[string][]record.TaskID, members []Member) {
	owner := map[record.TaskID]string{}
	for _, m := range members {
		for _, t := range m.Owned {
			owner[t] = m.ID
		}
	}
	for id, tasks := range assigned {
		assigned[id] = slices.DeleteFunc(tasks, func(t record.TaskID) bool {
			o, owned := owner[t]
			return owned && o != id
		})
	}
}
