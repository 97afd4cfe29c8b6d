package rebalance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"millrace/record"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// fleet is a group's members and the job's tasks.
type fleet struct {
	members []Member
	tasks   []record.TaskID
}

func drawTasks(t *rapid.T) (tasks []record.TaskID) {
	for sub := range rapid.IntRange(1, 4).Draw(t, "subtopologies") {
		for p := range rapid.Int32Range(0, 9).Draw(t, "partitions") {
			tasks = append(tasks, record.TaskID{Subtopology: sub, Partition: p})
		}
	}
	return tasks
}

// drawFleet makes a group in which every task has at most one owner, and any member may have any rows.
func drawFleet(t *rapid.T) fleet {
	f := fleet{tasks: drawTasks(t)}
	n := rapid.IntRange(1, 6).Draw(t, "members")
	for i := range n {
		f.members = append(f.members, Member{ID: fmt.Sprint("m", i)})
	}
	for _, task := range f.tasks {
		if owner := rapid.IntRange(-1, n-1).Draw(t, "owner"); owner >= 0 {
			f.members[owner].Owned = append(f.members[owner].Owned, task)
		}
		for i := range f.members {
			if rapid.IntRange(0, 3).Draw(t, "local") == 0 {
				f.members[i].Local = append(f.members[i].Local, task)
			}
		}
	}
	return f
}

// settled gives the members what was assigned, as the group does in the end.
func (f fleet) settled(assigned map[string][]record.TaskID) fleet {
	g := fleet{tasks: f.tasks}
	for _, m := range f.members {
		g.members = append(g.members, Member{ID: m.ID, Owned: assigned[m.ID], Local: m.Local})
	}
	return g
}

func (f fleet) shuffled(t *rapid.T) fleet {
	g := fleet{tasks: rapid.Permutation(f.tasks).Draw(t, "order of tasks")}
	for _, m := range rapid.Permutation(f.members).Draw(t, "order of members") {
		m.Owned = rapid.Permutation(m.Owned).Draw(t, "order of owned")
		m.Local = rapid.Permutation(m.Local).Draw(t, "order of local")
		g.members = append(g.members, m)
	}
	return g
}

// once tells whether every task has exactly one member, and the members' numbers differ by at most one.
func once(t *rapid.T, f fleet, assigned map[string][]record.TaskID) {
	seen := map[record.TaskID]string{}
	least, most := len(f.tasks), 0
	for _, m := range f.members {
		tasks, ok := assigned[m.ID]
		if !ok {
			t.Fatalf("%s is not in the plan", m.ID)
		}
		for _, task := range tasks {
			if other, ok := seen[task]; ok {
				t.Fatalf("%s goes to %s and to %s", task, other, m.ID)
			}
			seen[task] = m.ID
		}
		least, most = min(least, len(tasks)), max(most, len(tasks))
	}
	if len(seen) != len(f.tasks) || len(assigned) != len(f.members) {
		t.Fatalf("%d of %d tasks are assigned, to %d of %d members", len(seen), len(f.tasks), len(assigned), len(f.members))
	}
	if most-least > 1 {
		t.Fatalf("one has %d tasks, another %d", least, most)
	}
}

// stays counts the tasks that stay with their owners.
func stays(f fleet, assigned map[string][]record.TaskID) (n int) {
	for _, m := range f.members {
		for _, task := range m.Owned {
			if slices.Contains(assigned[m.ID], task) {
				n++
			}
		}
	}
	return n
}

// most is how many tasks can stay in any even plan: every member keeps up to the floor, and as many as there are tasks
// above that keep one more.
func most(f fleet) (n int) {
	floor, extra := len(f.tasks)/len(f.members), len(f.tasks)%len(f.members)
	for _, m := range f.members {
		n += min(len(m.Owned), floor)
		if len(m.Owned) > floor && extra > 0 {
			extra--
			n++
		}
	}
	return n
}

func TestPlansAreEvenAndComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		assigned := Assign(f.members, f.tasks)
		once(t, f, assigned)
		for id, tasks := range assigned {
			if !slices.IsSortedFunc(tasks, record.TaskID.Compare) {
				t.Fatalf("%s gets %v in no order", id, tasks)
			}
		}
	})
}

func TestPlansDoNotDependOnTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		g := f.shuffled(t)
		before := fmt.Sprint(g)
		if diff := gocmp.Diff(Assign(f.members, f.tasks), Assign(g.members, g.tasks)); diff != "" {
			t.Fatal(diff)
		}
		if fmt.Sprint(g) != before {
			t.Fatal("Assign changed its arguments")
		}
	})
}

// As many tasks stay with their owners as can in an even plan, whoever joins, leaves or comes back.
func TestPlansMoveTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		if n, want := stays(f, Assign(f.members, f.tasks)), most(f); n != want {
			t.Fatalf("%d tasks stay, %d could", n, want)
		}
	})
}

func TestNothingMovesWithoutAReason(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		first := Assign(f.members, f.tasks)
		f = f.settled(first)
		again := Assign(f.members, f.tasks)
		if diff := gocmp.Diff(first, again); diff != "" {
			t.Fatal(diff)
		}
		Withhold(again, f.members)
		if diff := gocmp.Diff(first, again); diff != "" {
			t.Fatalf("something is withheld of a plan that changes nothing:\n%s", diff)
		}
	})
}

// The tasks of each subtopology are spread too, where nobody owns anything and no rows pull.
func TestAFirstPlanSpreadsEachSubtopology(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := fleet{tasks: drawTasks(t)}
		for i := range rapid.IntRange(1, 6).Draw(t, "members") {
			f.members = append(f.members, Member{ID: fmt.Sprint("m", i)})
		}
		assigned := Assign(f.members, f.tasks)
		for sub := range 4 {
			least, most := len(f.tasks), 0
			for _, tasks := range assigned {
				n := len(slices.DeleteFunc(slices.Clone(tasks), func(id record.TaskID) bool { return id.Subtopology != sub }))
				least, most = min(least, n), max(most, n)
			}
			if most-least > 1 {
				t.Fatalf("one has %d tasks of subtopology %d, another %d: %v", least, sub, most, assigned)
			}
		}
	})
}

// A task without an owner goes to a member that has its rows, if one of these has room for it.
func TestRowsArePreferred(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		assigned := Assign(f.members, f.tasks)
		owned, taken := map[record.TaskID]bool{}, map[string]int{}
		for _, m := range f.members {
			for _, task := range m.Owned {
				owned[task] = true
			}
			for _, task := range assigned[m.ID] {
				if slices.Contains(m.Local, task) || slices.Contains(m.Owned, task) {
					taken[m.ID]++
				}
			}
		}
		for _, m := range f.members {
			for _, task := range assigned[m.ID] {
				if owned[task] || slices.Contains(m.Local, task) {
					continue
				}
				for _, other := range f.members {
					if slices.Contains(other.Local, task) && taken[other.ID] < len(assigned[other.ID]) {
						t.Fatalf("%s goes to %s without its rows, while %s has them and takes others that it has not", task, m.ID, other.ID)
					}
				}
			}
		}
	})
}

// A replica that was restarted gets back what it has rows of, although it owns nothing and the others kept on working.
func TestARestartedMemberGetsItsTasksBack(t *testing.T) {
	tasks := func(partitions ...int32) (all []record.TaskID) {
		for _, p := range partitions {
			all = append(all, record.TaskID{Partition: p})
		}
		return all
	}
	members := []Member{{ID: "a", Owned: tasks(0, 1), Local: tasks(0, 1)}, {ID: "b", Owned: tasks(2, 3), Local: tasks(2, 3)}, {ID: "c", Local: tasks(4, 5, 6)}}
	want := map[string][]record.TaskID{"a": tasks(0, 1), "b": tasks(2, 3), "c": tasks(4, 5, 6)}
	if diff := gocmp.Diff(want, Assign(members, tasks(0, 1, 2, 3, 4, 5, 6))); diff != "" {
		t.Error(diff)
	}
}

// What another member still works on is withheld until it has given it up; after that everything is assigned, within few
// rounds, and nobody ever has a task together with somebody else.
func TestTasksChangeHandsOneAtATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		var assigned map[string][]record.TaskID
		for round := 0; ; round++ {
			if round == 3 {
				t.Fatal("tasks are still withheld after three rounds")
			}
			assigned = Assign(f.members, f.tasks)
			planned := 0
			Withhold(assigned, f.members)
			for _, m := range f.members {
				planned += len(assigned[m.ID])
				for _, task := range assigned[m.ID] {
					for _, other := range f.members {
						if other.ID != m.ID && slices.Contains(other.Owned, task) {
							t.Fatalf("%s goes to %s while %s works on it", task, m.ID, other.ID)
						}
					}
				}
			}
			f = f.settled(assigned)
			if planned == len(f.tasks) {
				break
			}
		}
		once(t, f, assigned)
	})
}

func TestNobodyGetsNothing(t *testing.T) {
	if got := Assign(nil, []record.TaskID{{}}); len(got) != 0 {
		t.Errorf("a plan for nobody: %v", got)
	}
	if got := Assign([]Member{{ID: "a"}}, nil); len(got) != 1 || len(got["a"]) != 0 {
		t.Errorf("a plan of nothing: %v", got)
	}
}

// A plan is made while the group stands still, so a job of thousands of tasks must not take seconds.
func TestLargeGroupsArePlannedQuickly(t *testing.T) {
	var f fleet
	for p := range int32(2000) {
		f.tasks = append(f.tasks, record.TaskID{Subtopology: int(p) % 4, Partition: p / 4})
	}
	f.members = []Member{{ID: "alone", Owned: f.tasks, Local: f.tasks}}
	for i := range 40 {
		f.members = append(f.members, Member{ID: fmt.Sprint("new", i), Local: f.tasks[:i*10]})
	}
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			Assign(f.members, f.tasks)
		}
	})
	if perPlan := result.NsPerOp() / 1e6; perPlan > 2000 {
		t.Errorf("a plan takes %d ms", perPlan)
	}
	assigned := Assign(f.members, f.tasks)
	sizes := slices.Collect(maps.Values(assigned))
	slices.SortFunc(sizes, func(a, b []record.TaskID) int { return cmp.Compare(len(a), len(b)) })
	if len(sizes[0]) != 48 || len(sizes[40]) != 49 {
		t.Errorf("between %d and %d tasks each", len(sizes[0]), len(sizes[40]))
	}
}
