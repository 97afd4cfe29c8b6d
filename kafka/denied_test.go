package kafka

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"millrace/eos"

	"github.com/IBM/sarama"
)

func TestARefusedAccessSaysWhatToGrant(t *testing.T) {
	c := Config{Group: "app", TransactionalID: "app-r0"}
	for err, want := range map[error]string{
		sarama.ErrTopicAuthorizationFailed:                        "Write on topic a, b;",
		fmt.Errorf("a-0: %w", sarama.ErrTopicAuthorizationFailed): "Write on topic a, b;",
		sarama.ErrGroupAuthorizationFailed:                        "Read on group app;",
		sarama.ErrTransactionalIDAuthorizationFailed:              "Write on transactional id app-r0;",
		sarama.ErrClusterAuthorizationFailed:                      "IdempotentWrite on the cluster",
	} {
		got := reaction("produce", c.denied(err, "Write", "a", "b"))
		if !errors.Is(got, eos.ErrConfig) || !errors.Is(got, err) || !strings.Contains(got.Error(), "lacks the permission "+want) {
			t.Errorf("%v became %v", err, got)
		}
	}
	for _, err := range []error{nil, io.EOF, sarama.ErrNotLeaderForPartition, sarama.ErrSASLAuthenticationFailed} {
		if got := c.denied(err, "Write", "a"); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestTheTopicsThatAreRefusedAreNamed(t *testing.T) {
	const none, notAttempted, denied = sarama.ErrNoError, sarama.ErrOperationNotAttempted, sarama.ErrTopicAuthorizationFailed
	answer := map[string][]*sarama.PartitionError{"c": {{Err: notAttempted}, {Err: denied}}, "b": {{Err: none}, {Err: notAttempted}}, "a": {{Err: denied}}}
	if got := strings.Join(refused(answer), " "); got != "a c" {
		t.Errorf("%q, want the topics a and c", got)
	}
}
