package kafka

import (
	"errors"
	"fmt"

	"millrace/eos"

	"github.com/IBM/sarama"
)

// kindOf sorts the brokers' answers by what we do about them.
type kind uint8

const (
	recoverable   kind = iota // drop the epoch, take a new producer epoch, start from what the brokers say
	retriable                 // the same request again, after a pause and fresh metadata
	lost                      // the group no longer counts us as the owner
	fenced                    // our producer epoch is no longer the newest, or its transaction timed out
	identity                  // another process has our group.instance.id
	configuration             // a person must change something
)

// Names for codes that sarama has none for.
const (
	errProducerFenced     = sarama.KError(90)
	errTransactionAborted = sarama.KError(120)
)

var kinds = map[sarama.KError]kind{
	sarama.ErrUnknown:                            recoverable,
	sarama.ErrUnknownTopicOrPartition:            retriable,
	sarama.ErrLeaderNotAvailable:                 retriable,
	sarama.ErrNotLeaderForPartition:              retriable,
	sarama.ErrRequestTimedOut:                    retriable,
	sarama.ErrBrokerNotAvailable:                 retriable,
	sarama.ErrReplicaNotAvailable:                retriable,
	sarama.ErrNetworkException:                   retriable,
	sarama.ErrOffsetsLoadInProgress:              retriable,
	sarama.ErrConsumerCoordinatorNotAvailable:    retriable,
	sarama.ErrNotCoordinatorForConsumer:          retriable,
	sarama.ErrNotEnoughReplicas:                  retriable,
	sarama.ErrNotEnoughReplicasAfterAppend:       retriable,
	sarama.ErrNotController:                      retriable,
	sarama.ErrKafkaStorageError:                  retriable,
	sarama.ErrConcurrentTransactions:             retriable,
	sarama.ErrUnstableOffsetCommit:               retriable,
	sarama.ErrThrottlingQuotaExceeded:            retriable,
	sarama.ErrFencedLeaderEpoch:                  retriable,
	sarama.ErrUnknownLeaderEpoch:                 retriable,
	sarama.ErrOffsetNotAvailable:                 retriable,
	sarama.ErrListenerNotFound:                   retriable,
	sarama.ErrPreferredLeaderNotAvailable:        retriable,
	sarama.ErrEligibleLeadersNotAvailable:        retriable,
	sarama.ErrInvalidMessage:                     retriable, // CORRUPT_MESSAGE: damaged on the way
	sarama.ErrIllegalGeneration:                  lost,
	sarama.ErrUnknownMemberId:                    lost,
	sarama.ErrRebalanceInProgress:                lost,
	sarama.ErrFencedInstancedId:                  identity,
	sarama.ErrInvalidProducerEpoch:               fenced,
	errProducerFenced:                            fenced,
	sarama.ErrTransactionCoordinatorFenced:       recoverable,
	sarama.ErrInvalidTxnState:                    recoverable,
	sarama.ErrInvalidProducerIDMapping:           recoverable,
	sarama.ErrOutOfOrderSequenceNumber:           recoverable,
	sarama.ErrUnknownProducerID:                  recoverable,
	errTransactionAborted:                        recoverable,
	sarama.ErrTopicAuthorizationFailed:           configuration,
	sarama.ErrGroupAuthorizationFailed:           configuration,
	sarama.ErrClusterAuthorizationFailed:         configuration,
	sarama.ErrTransactionalIDAuthorizationFailed: configuration,
	sarama.ErrUnsupportedVersion:                 configuration,
	sarama.ErrUnsupportedForMessageFormat:        configuration,
	sarama.ErrInvalidTopic:                       configuration,
	sarama.ErrInvalidTransactionTimeout:          configuration,
	sarama.ErrInvalidGroupId:                     configuration,
	sarama.ErrInvalidSessionTimeout:              configuration,
	sarama.ErrInconsistentGroupProtocol:          configuration,
	sarama.ErrGroupMaxSizeReached:                configuration,
	sarama.ErrPolicyViolation:                    configuration,
	sarama.ErrInvalidRequiredAcks:                configuration,
	sarama.ErrUnsupportedSASLMechanism:           configuration,
	sarama.ErrSASLAuthenticationFailed:           configuration,
	sarama.ErrMessageSizeTooLarge:                configuration, // sizes are checked before: the topic's limit is below ours
	sarama.ErrMessageSetSizeTooLarge:             configuration,
	sarama.ErrInvalidTimestamp:                   configuration,
	sarama.ErrInvalidRecord:                      configuration,
}

func kindOf(err error) kind {
	var code sarama.KError
	if errors.As(err, &code) {
		return kinds[code] // unlisted: recoverable
	}
	return retriable // the transport: EOF, reset, time-out, out of brokers
}

// reaction wraps err so that eos's callers see what to do, and says what was tried.
func reaction(what string, err error) error {
	switch kindOf(err) {
	case lost:
		return fmt.Errorf("%s: %w (%w)", what, eos.ErrLost, err)
	case fenced:
		return fmt.Errorf("%s: %w (%w)", what, eos.ErrFenced, named(err))
	case identity:
		return fmt.Errorf("%s: %w (%w)", what, eos.ErrIdentity, err)
	case configuration:
		return fmt.Errorf("%s: %w (%w)", what, eos.ErrConfig, err)
	}
	return fmt.Errorf("%s: %w", what, named(err))
}

// named gives words to codes that sarama prints as "Unknown error".
func named(err error) error {
	switch {
	case errors.Is(err, errProducerFenced):
		return fmt.Errorf("PRODUCER_FENCED: a newer producer epoch, or the transaction timed out (%w)", errProducerFenced)
	case errors.Is(err, errTransactionAborted):
		return fmt.Errorf("TRANSACTION_ABORTABLE (%w)", errTransactionAborted)
	}
	return err
}

// asError turns a code into an error, NO_ERROR into nil.
func asError(code sarama.KError) error {
	if errors.Is(code, sarama.ErrNoError) {
		return nil
	}
	return code
}
