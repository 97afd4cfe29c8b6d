package kafka

import (
	"context"
	"sync"

	"millrace/eos"
	"millrace/record"

	"github.com/IBM/sarama"
)

// member is our identity in the group's present generation.
type member struct {
	record.Generation
	instance *string
}

// The gate keeps offset commits out of the time in which no generation of ours is valid: from the join request to the
// assignment the coordinator refuses the old one, and a refused commit costs a rollback. A commit that is under way holds
// the join back; a join that is under way holds commits back.
type gate struct {
	mu      sync.Mutex
	changed *sync.Cond
	joining bool
	commits int // offset commits under way
	member  member
	session sarama.ConsumerGroupSession // knows our present member id; nil: we have none
}

func newGate(instance string) *gate {
	g := &gate{}
	g.changed = sync.NewCond(&g.mu)
	if instance != "" {
		g.member.instance = &instance
	}
	return g
}

// close begins a join.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.joining = true
	for g.commits > 0 {
		g.changed.Wait()
	}
}

// open ends a join with a new generation.
func (g *gate) open(id int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.joining, g.member.ID = false, id
	g.changed.Broadcast()
}

// lose ends the membership: commits fail until the next session has begun. The old session's member id must not meet the
// next one's generation: for a static member that would look as if another process had its identity.
func (g *gate) lose() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.joining, g.session = false, nil
	g.changed.Broadcast()
}

// join notes the session of a new membership.
func (g *gate) join(s sarama.ConsumerGroupSession) {
	g.mu.Lock()
	g.session = s
	g.mu.Unlock()
	g.open(s.GenerationID())
}

// under runs commit with a generation that stays valid while it runs.
func (g *gate) under(ctx context.Context, commit func(member) error) error {
	stop := context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.changed.Broadcast()
	})
	defer stop()
	g.mu.Lock()
	for g.joining && ctx.Err() == nil {
		g.changed.Wait()
	}
	if ctx.Err() != nil {
		g.mu.Unlock()
		return context.Cause(ctx)
	}
	if g.session == nil {
		g.mu.Unlock()
		return eos.ErrLost
	}
	m := g.member
	m.MemberID = g.session.MemberID()
	g.commits++
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.commits--
		g.changed.Broadcast()
		g.mu.Unlock()
	}()
	return commit(m)
}
