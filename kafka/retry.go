package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/IBM/sarama"
)

// backoff grows from 1 ms to 100 ms: a coordinator that still writes the markers of the last transaction is ready after a
// few milliseconds, a broker that restarts after seconds.
type backoff struct{ next time.Duration }

func (b *backoff) wait(ctx context.Context) error {
	if b.next == 0 {
		b.next = time.Millisecond
	}
	t := time.NewTimer(b.next)
	defer t.Stop()
	b.next = min(2*b.next, 100*time.Millisecond)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// retry repeats attempt while it fails in a way that time can heal, until ctx ends. The error then tells both: what was
// wrong to the last, and why it was given up.
func retry(ctx context.Context, attempt func() error) error {
	var b backoff
	for {
		err := attempt()
		if err == nil || kindOf(err) != retriable {
			return err
		}
		if ended := b.wait(ctx); ended != nil {
			return fmt.Errorf("%w; given up: %w", err, ended)
		}
	}
}

// Transient tells whether time may heal an error: the brokers are away, or busy with themselves. An error that is not
// known to come from them, such as a refusal of our own, is not transient.
func Transient(err error) bool {
	if err == nil || kindOf(err) != retriable {
		return false
	}
	var code sarama.KError
	var transport net.Error
	switch {
	case errors.As(err, &code), errors.As(err, &transport):
		return true
	}
	for _, known := range []error{io.EOF, io.ErrUnexpectedEOF, os.ErrDeadlineExceeded, context.DeadlineExceeded, net.ErrClosed,
		sarama.ErrOutOfBrokers, sarama.ErrNotConnected, sarama.ErrControllerNotAvailable, sarama.ErrBrokerNotFound, sarama.ErrIncompleteResponse} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}
