package kafka

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/IBM/sarama"

	"millrace/eos"
)

func TestEveryCodeIsSortedOnPurpose(t *testing.T) {
	known := 0
	for code := sarama.KError(-1); code < 500; code++ {
		if code == sarama.ErrNoError || code != sarama.ErrProducerFenced && strings.HasPrefix(code.Error(), "Unknown error") {
			continue
		}
		known++
		if _, ok := kinds[code]; !ok {
			t.Errorf("code %d is sorted by accident: %v", code, code)
		}
	}
	if known < 90 {
		t.Errorf("sarama knows %d codes only: is Unknown error still its text for others?", known)
	}
	if _, ok := kinds[sarama.ErrNoError]; ok {
		t.Error("NO_ERROR is no error")
	}
}

func TestErrorsAskForTheirReaction(t *testing.T) {
	kindsOfReaction := []error{eos.ErrLost, eos.ErrFenced, eos.ErrIdentity, eos.ErrConfig}
	tests := []struct {
		err  error
		want error // nil: the ordinary recovery
	}{
		{sarama.ErrIllegalGeneration, eos.ErrLost},
		{sarama.ErrUnknownMemberId, eos.ErrLost},
		{sarama.ErrRebalanceInProgress, eos.ErrLost},
		{fmt.Errorf("wrapped: %w", eos.ErrLost), eos.ErrLost},
		{sarama.ErrFencedInstancedId, eos.ErrIdentity},
		{sarama.ErrProducerFenced, eos.ErrFenced},
		{sarama.ErrInvalidProducerEpoch, eos.ErrFenced},
		{sarama.ErrTransactionalIDAuthorizationFailed, eos.ErrConfig},
		{sarama.ErrMessageSizeTooLarge, eos.ErrConfig},
		{sarama.ConfigurationError("bad"), eos.ErrConfig},
		{sarama.ErrInvalidTxnState, nil},
		{sarama.KError(120), nil},
		{sarama.KError(9999), nil},
		{sarama.ErrNotLeaderForPartition, nil},
		{io.EOF, nil},
	}
	for _, tt := range tests {
		got := reaction("try", tt.err)
		if !errors.Is(got, tt.err) || !strings.HasPrefix(got.Error(), "try: ") {
			t.Errorf("%v became %v", tt.err, got)
		}
		for _, r := range kindsOfReaction {
			if errors.Is(got, r) != (r == tt.want) {
				t.Errorf("%v: is %q: %v", tt.err, r, errors.Is(got, r))
			}
		}
	}
	if text := reaction("try", sarama.ErrProducerFenced).Error(); !strings.Contains(text, "PRODUCER_FENCED") {
		t.Errorf("PRODUCER_FENCED is not named: %s", text)
	}
}

func TestOnlyWhatTimeCanHealIsTriedAgain(t *testing.T) {
	for _, err := range []error{io.EOF, io.ErrUnexpectedEOF, &net.OpError{Op: "dial", Err: errors.New("refused")}, sarama.ErrOutOfBrokers,
		sarama.ErrNotConnected, sarama.ErrUnknownTopicOrPartition, fmt.Errorf("wrapped: %w", sarama.ErrNotCoordinatorForConsumer)} {
		if got := kindOf(err); got != retriable {
			t.Errorf("%v is of kind %d", err, got)
		}
	}
	for _, err := range []error{&OffsetGone{}, errOldFormat, errDamaged, eos.ErrLost, sarama.ErrClosedClient, sarama.PacketEncodingError{Info: "ours"}, sarama.ErrUnknown} {
		if got := kindOf(err); got == retriable {
			t.Errorf("%v is tried again for ever", err)
		}
	}
}

func TestTheAnswerThatDecidesIsPicked(t *testing.T) {
	of := func(codes ...sarama.KError) map[string][]*sarama.PartitionError {
		m := map[string][]*sarama.PartitionError{}
		for i, c := range codes {
			topic := fmt.Sprint(i % 2)
			m[topic] = append(m[topic], &sarama.PartitionError{Partition: int32(i), Err: c})
		}
		return m
	}
	const none, notAttempted = sarama.ErrNoError, sarama.ErrOperationNotAttempted
	tests := []struct {
		codes []sarama.KError
		want  sarama.KError
	}{
		{nil, none},
		{[]sarama.KError{none, none}, none},
		{[]sarama.KError{notAttempted, sarama.ErrTopicAuthorizationFailed, notAttempted}, sarama.ErrTopicAuthorizationFailed},
		{[]sarama.KError{none, notAttempted}, notAttempted},
		{[]sarama.KError{sarama.ErrUnknownTopicOrPartition, sarama.ErrTopicAuthorizationFailed}, sarama.ErrTopicAuthorizationFailed},
		{[]sarama.KError{sarama.ErrTopicAuthorizationFailed, sarama.ErrUnknownTopicOrPartition}, sarama.ErrTopicAuthorizationFailed},
	}
	for _, tt := range tests {
		if got := worst(of(tt.codes...)); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.codes, got, tt.want)
		}
	}
}
