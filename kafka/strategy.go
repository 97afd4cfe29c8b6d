package kafka

import (
	"slices"
	"strings"

	"millrace/record"

	"github.com/IBM/sarama"
)

// GroupMember is what the leader knows of a member when it plans.
type GroupMember struct {
	ID       string
	UserData []byte                  // what its Planner said
	Owned    []record.TopicPartition // what it still works on, as of Generation
	// Generation is the one in which Owned was valid; -1 when the member has just started or its broker is older than 3.2.
	Generation int32
}

// Planner decides who works on what. Both methods run while the group waits, with heartbeats stopped.
type Planner interface {
	// UserData is what the leader should know of this member.
	UserData() []byte
	// Plan assigns partitions to members; a partition that another member still owns must be left out of the plan, its
	// owner gives it up first and joins again.
	Plan(members []GroupMember) (map[string][]record.TopicPartition, error)
}

// strategy is a Planner in sarama's form, and the hook by which the membership learns of every generation.
type strategy struct {
	planner    Planner
	membership *Membership
}

func (s *strategy) Name() string { return "millrace" }

func (s *strategy) SupportedProtocols() []sarama.RebalanceProtocol {
	return []sarama.RebalanceProtocol{sarama.RebalanceProtocolCooperative}
}

// SubscriptionUserData is called when a join begins: from here until OnAssignment the coordinator refuses the old
// generation, so commits wait.
func (s *strategy) SubscriptionUserData([]string) ([]byte, error) {
	s.membership.gate.close()
	return s.planner.UserData(), nil
}

func (s *strategy) OnAssignment(assignment *sarama.ConsumerGroupMemberAssignment, generation int32) {
	s.membership.assigned(partitions(assignment.Topics), generation)
}

func (s *strategy) Plan(members map[string]sarama.ConsumerGroupMemberMetadata, _ map[string][]int32) (sarama.BalanceStrategyPlan, error) {
	var known []GroupMember
	for id, m := range members {
		g := GroupMember{ID: id, UserData: m.UserData, Generation: m.GenerationID}
		for _, o := range m.OwnedPartitions {
			for _, p := range o.Partitions {
				g.Owned = append(g.Owned, record.TopicPartition{Topic: o.Topic, Partition: p})
			}
		}
		known = append(known, g)
	}
	slices.SortFunc(known, func(a, b GroupMember) int { return strings.Compare(a.ID, b.ID) })
	assigned, err := s.planner.Plan(known)
	if err != nil {
		return nil, err
	}
	plan := sarama.BalanceStrategyPlan{}
	for id, tps := range assigned {
		for _, tp := range tps {
			plan.Add(id, tp.Topic, tp.Partition)
		}
	}
	return plan, nil
}

func (s *strategy) AssignmentData(string, map[string][]int32, int32) ([]byte, error) { return nil, nil }

func partitions(topics map[string][]int32) []record.TopicPartition {
	var tps []record.TopicPartition
	for t, ps := range topics {
		for _, p := range ps {
			tps = append(tps, record.TopicPartition{Topic: t, Partition: p})
		}
	}
	slices.SortFunc(tps, func(a, b record.TopicPartition) int {
		if c := strings.Compare(a.Topic, b.Topic); c != 0 {
			return c
		}
		return int(a.Partition - b.Partition)
	})
	return tps
}
