package topology

import "slices"

// accessInWord is one thing that the job's principal must be allowed, in the words of Kafka's ACLs.
type accessInWord struct {
	Resource   string   `json:"resource"` // topic, group, transactional_id, cluster
	Name       string   `json:"name"`
	Pattern    string   `json:"pattern"` // literal, prefixed
	Operations []string `json:"operations"`
	Before     string   `json:"before,omitempty"` // only brokers older than this version ask for it
}

// access lists what the job needs and nothing more.
func (p *Plan) access(o ExplainOptions) []accessInWord {
	var list []accessInWord
	for _, topic := range p.SourceTopics() {
		list = append(list, accessInWord{Resource: "topic", Name: topic, Pattern: "literal", Operations: []string{"Read", "Describe"}})
	}
	for _, topic := range p.OutputTopics() {
		list = append(list, accessInWord{Resource: "topic", Name: topic, Pattern: "literal", Operations: []string{"Write", "Describe"}})
	}
	if slices.ContainsFunc(p.Subtopologies, func(s *Subtopology) bool { return len(s.Stores) > 0 }) {
		operations := []string{"Create", "Read", "Write", "Describe", "DescribeConfigs"}
		if len(p.Repartitions()) > 0 { // what has been read of them is deleted
			operations = slices.Insert(operations, 3, "Delete")
		}
		list = append(list, accessInWord{Resource: "topic", Name: p.ApplicationID + "-", Pattern: "prefixed", Operations: operations})
	}
	list = append(list, accessInWord{Resource: "group", Name: p.ApplicationID, Pattern: "literal", Operations: []string{"Read", "Describe"}})
	if o.Guarantee == "at_least_once" {
		return append(list, accessInWord{Resource: "cluster", Name: "kafka-cluster", Pattern: "literal", Operations: []string{"IdempotentWrite"}, Before: "2.8"})
	}
	return append(list, accessInWord{Resource: "transactional_id", Name: p.ApplicationID + "-", Pattern: "prefixed", Operations: []string{"Write", "Describe"}})
}
