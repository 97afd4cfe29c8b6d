package topology

import "slices"

// accessInWord is one thing that the job's principal must be allowed, in the words of Kafka's ACLs.
type accessInWord struct {
	Resource   string   `json:"resource"` // topic, group, transactional_id
	Name       string   `json:"name"`
	Pattern    string   `json:"pattern"` // literal, prefixed
	Operations []string `json:"operations"`
}

// access lists what the job needs and nothing more.
func (p *Plan) access(o ExplainOptions) []accessInWord {
	var list []accessInWord
	for _, topic := range p.SourceTopics() {
		list = append(list, accessInWord{"topic", topic, "literal", []string{"Read", "Describe"}})
	}
	for _, topic := range p.OutputTopics() {
		list = append(list, accessInWord{"topic", topic, "literal", []string{"Write", "Describe"}})
	}
	if slices.ContainsFunc(p.Subtopologies, func(s *Subtopology) bool { return len(s.Stores) > 0 }) {
		list = append(list, accessInWord{"topic", p.ApplicationID + "-", "prefixed", []string{"Create", "Read", "Write", "Delete", "Describe", "DescribeConfigs"}})
	}
	list = append(list, accessInWord{"group", p.ApplicationID, "literal", []string{"Read", "Describe"}})
	if o.Guarantee != "at_least_once" {
		list = append(list, accessInWord{"transactional_id", p.ApplicationID + "-", "prefixed", []string{"Write", "Describe"}})
	}
	return list
}
