package kafka

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"millrace/record"

	"github.com/IBM/sarama"
)

// denied adds to an error by which the brokers refuse an access what to grant: the brokers' own text names neither. An
// error of another kind stays as it is. operation and topics are what the request asks of topics; what it asks of the
// group and of the transactional id goes without saying.
func (c Config) denied(err error, operation string, topics ...string) error {
	permission := ""
	switch {
	case errors.Is(err, sarama.ErrTopicAuthorizationFailed):
		permission = operation + " on topic " + strings.Join(topics, ", ")
	case errors.Is(err, sarama.ErrGroupAuthorizationFailed):
		permission = "Read on group " + c.Group
	case errors.Is(err, sarama.ErrTransactionalIDAuthorizationFailed):
		permission = "Write on transactional id " + c.TransactionalID
	case errors.Is(err, sarama.ErrClusterAuthorizationFailed):
		permission = "IdempotentWrite on the cluster, which brokers before 2.8 want of a producer without transactions"
	default:
		return err
	}
	return fmt.Errorf("%w: this login lacks the permission %s; `millrace explain --acls` lists all that the job needs", err, permission)
}

// topicsOf lists the topics of partitions, each once.
func topicsOf(tps []record.TopicPartition) []string {
	var topics []string
	for _, tp := range tps {
		if !slices.Contains(topics, tp.Topic) {
			topics = append(topics, tp.Topic)
		}
	}
	return topics
}
