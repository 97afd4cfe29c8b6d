package observe

import (
	"fmt"
	"strings"
	"time"
)

// check is one line of a health answer.
type check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Note string `json:"note,omitempty"` // what is the matter, or what was looked at
}

// checks is the answer to one probe; it passes when each of them does.
type checks []check

func (c checks) ok() bool {
	for _, x := range c {
		if !x.OK {
			return false
		}
	}
	return true
}

// text lists the checks one a line, in the form that the Kubernetes API server made known.
func (c checks) text() string {
	var b strings.Builder
	for _, x := range c {
		mark := "[+]"
		if !x.OK {
			mark = "[-]"
		}
		b.WriteString(mark + x.Name)
		if x.Note != "" {
			b.WriteString(": " + clean(x.Note))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// live fails only where a restart would help: in state error, and when the instance is wedged. A restore or an
// unreachable broker takes as long as it takes; killing the process then would make an outage longer.
func (o *Observer) live() checks {
	now := o.opt.Clock()
	o.mu.Lock()
	defer o.mu.Unlock()
	return checks{
		{"state", o.life.state != failed, o.life.state},
		o.wedged(now),
	}
}

// wedged tells whether input waits and nothing commits although nothing known stands in the way. The caller holds mu.
func (o *Observer) wedged(now time.Time) check {
	c := check{Name: "progress", OK: true}
	lag := totalLag(o.marks)
	switch {
	case len(o.life.active) == 0:
		c.Note = "no tasks are assigned"
	case o.restoringNow() > 0 || !o.life.ready:
		c.Note = "restoring"
	case o.life.draining:
		c.Note = "draining"
	case !o.life.reachable:
		c.Note = "kafka is unreachable; a restart would not help"
	case lag == 0:
		c.Note = "no input waits"
	default:
		since := o.life.quiet
		if o.commits.at.After(since) {
			since = o.commits.at
		}
		stalled := now.Sub(since)
		c.OK = stalled < o.opt.StallTimeout
		c.Note = fmt.Sprintf("%d records wait, last progress %s ago, limit %s", lag, short(stalled), o.opt.StallTimeout)
	}
	return c
}

// readiness says whether the instance gives results: a rolling update waits for it before it takes the next instance.
func (o *Observer) readiness() checks {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.restoringNow()
	restored := check{"restored", o.life.ready && n == 0 && !o.life.failing, ""}
	switch {
	case o.life.failing && n == 0:
		restored.Note = "work has failed and starts anew; the log says why"
	case !restored.OK:
		restored.Note = fmt.Sprintf("%d stores are restoring; see /v1/restore", n)
	}
	committed := check{"committed", !o.commits.at.IsZero(), ""}
	if !committed.OK {
		// An instance without input never commits, and is as ready as it can be.
		committed.OK = len(o.life.active) == 0 || o.marks != nil && totalLag(o.marks) == 0
		committed.Note = "no commit yet"
	}
	return checks{
		{"state", o.life.state != failed, o.life.state},
		{"joined", o.life.joined, ""},
		{"kafka", o.life.reachable, ""},
		restored,
		committed,
		{"not_draining", !o.life.draining, ""},
	}
}

// startup passes once the instance has been a member of the group.
func (o *Observer) startup() checks {
	o.mu.Lock()
	defer o.mu.Unlock()
	return checks{{"joined", o.life.joined, ""}}
}
