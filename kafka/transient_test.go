package kafka

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"millrace/eos"

	"github.com/IBM/sarama"
)

func TestOnlyWhatTimeCanHealIsTransient(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("step counts has changed"), false},
		{fmt.Errorf("topic a does not exist"), false},
		{sarama.ErrSASLAuthenticationFailed, false},
		{fmt.Errorf("join: %w", eos.ErrLost), false},
		{fmt.Errorf("connect: %w", io.EOF), true},
		{fmt.Errorf("connect: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}), true},
		{fmt.Errorf("connect: %w", sarama.ErrOutOfBrokers), true},
		{fmt.Errorf("look: %w", sarama.ErrNotLeaderForPartition), true},
	} {
		if got := Transient(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}
