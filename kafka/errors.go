package kafka

import (
	"errors"
	"fmt"

	"millrace/eos"

	"github.com/IBM/sarama"
)

// kind sorts the brokers' answers by what we do about them.
type kind uint8

const (
	recoverable   kind = iota // drop the epoch, take a new producer epoch, start from what the brokers say
	retriable                 // the same request again, after a pause and fresh metadata
	lost                      // the group no longer counts us as the owner
	fenced                    // our producer epoch is no longer the newest, or its transaction timed out
	identity                  // another process has our group.instance.id
	configuration             // a person must change something
)

// errTransactionAbortable is a code that sarama has no name for.
const errTransactionAbortable = sarama.KError(120)

// kinds has every code that sarama knows, so that none is sorted by accident; a test holds that. Newer codes, which only
// newer requests than ours are answered with, count as recoverable.
var kinds = map[sarama.KError]kind{
	sarama.ErrUnknownTopicOrPartition:         retriable, // also while a new topic's metadata spread
	sarama.ErrLeaderNotAvailable:              retriable,
	sarama.ErrNotLeaderForPartition:           retriable,
	sarama.ErrRequestTimedOut:                 retriable,
	sarama.ErrBrokerNotAvailable:              retriable,
	sarama.ErrReplicaNotAvailable:             retriable,
	sarama.ErrNetworkException:                retriable,
	sarama.ErrOffsetsLoadInProgress:           retriable,
	sarama.ErrConsumerCoordinatorNotAvailable: retriable,
	sarama.ErrNotCoordinatorForConsumer:       retriable,
	sarama.ErrNotEnoughReplicas:               retriable,
	sarama.ErrNotEnoughReplicasAfterAppend:    retriable,
	sarama.ErrNotController:                   retriable,
	sarama.ErrKafkaStorageError:               retriable,
	sarama.ErrConcurrentTransactions:          retriable,
	sarama.ErrUnstableOffsetCommit:            retriable,
	sarama.ErrThrottlingQuotaExceeded:         retriable,
	sarama.ErrFencedLeaderEpoch:               retriable,
	sarama.ErrUnknownLeaderEpoch:              retriable,
	sarama.ErrOffsetNotAvailable:              retriable,
	sarama.ErrListenerNotFound:                retriable,
	sarama.ErrPreferredLeaderNotAvailable:     retriable,
	sarama.ErrEligibleLeadersNotAvailable:     retriable,
	sarama.ErrInvalidMessage:                  retriable, // CORRUPT_MESSAGE: damaged on the way
	sarama.ErrStaleControllerEpochCode:        retriable,
	sarama.ErrStaleBrokerEpoch:                retriable,
	sarama.ErrFetchSessionIDNotFound:          retriable,
	sarama.ErrInvalidFetchSessionEpoch:        retriable,
	sarama.ErrReassignmentInProgress:          retriable,

	sarama.ErrIllegalGeneration:   lost,
	sarama.ErrUnknownMemberId:     lost,
	sarama.ErrRebalanceInProgress: lost,
	sarama.ErrFencedInstancedId:   identity,

	sarama.ErrInvalidProducerEpoch: fenced,
	sarama.ErrProducerFenced:       fenced,

	sarama.ErrUnknown:                      recoverable,
	sarama.ErrOffsetOutOfRange:             recoverable, // where it is expected it is looked at before
	sarama.ErrInvalidMessageSize:           recoverable,
	sarama.ErrTransactionCoordinatorFenced: recoverable,
	sarama.ErrInvalidTxnState:              recoverable,
	sarama.ErrInvalidProducerIDMapping:     recoverable,
	sarama.ErrOutOfOrderSequenceNumber:     recoverable,
	sarama.ErrDuplicateSequenceNumber:      recoverable, // a success to Produce, which looks at it before
	sarama.ErrUnknownProducerID:            recoverable,
	sarama.ErrOperationNotAttempted:        recoverable, // another partition's answer says why
	sarama.ErrMemberIdRequired:             recoverable, // sarama joins again with the id that it got
	sarama.ErrInvalidRequest:               recoverable,
	sarama.ErrNonEmptyGroup:                recoverable,
	sarama.ErrGroupIDNotFound:              recoverable,
	sarama.ErrGroupSubscribedToTopic:       recoverable,
	sarama.ErrTopicAlreadyExists:           recoverable, // whoever creates topics looks at it before
	sarama.ErrElectionNotNeeded:            recoverable,
	sarama.ErrNoReassignmentInProgress:     recoverable,
	sarama.ErrInvalidUpdateVersion:         recoverable,
	errTransactionAbortable:                recoverable,

	sarama.ErrTopicAuthorizationFailed:           configuration,
	sarama.ErrGroupAuthorizationFailed:           configuration,
	sarama.ErrClusterAuthorizationFailed:         configuration,
	sarama.ErrTransactionalIDAuthorizationFailed: configuration,
	sarama.ErrDelegationTokenAuthDisabled:        configuration,
	sarama.ErrDelegationTokenNotFound:            configuration,
	sarama.ErrDelegationTokenOwnerMismatch:       configuration,
	sarama.ErrDelegationTokenRequestNotAllowed:   configuration,
	sarama.ErrDelegationTokenAuthorizationFailed: configuration,
	sarama.ErrDelegationTokenExpired:             configuration,
	sarama.ErrInvalidPrincipalType:               configuration,
	sarama.ErrSecurityDisabled:                   configuration,
	sarama.ErrUnsupportedSASLMechanism:           configuration,
	sarama.ErrIllegalSASLState:                   configuration,
	sarama.ErrSASLAuthenticationFailed:           configuration,
	sarama.ErrUnsupportedVersion:                 configuration,
	sarama.ErrUnsupportedForMessageFormat:        configuration,
	sarama.ErrUnsupportedCompressionType:         configuration,
	sarama.ErrInvalidTopic:                       configuration,
	sarama.ErrInvalidPartitions:                  configuration,
	sarama.ErrInvalidReplicationFactor:           configuration,
	sarama.ErrInvalidReplicaAssignment:           configuration,
	sarama.ErrInvalidConfig:                      configuration,
	sarama.ErrPolicyViolation:                    configuration,
	sarama.ErrTopicDeletionDisabled:              configuration,
	sarama.ErrLogDirNotFound:                     configuration,
	sarama.ErrInvalidTransactionTimeout:          configuration,
	sarama.ErrInvalidGroupId:                     configuration,
	sarama.ErrInvalidSessionTimeout:              configuration,
	sarama.ErrInconsistentGroupProtocol:          configuration,
	sarama.ErrGroupMaxSizeReached:                configuration,
	sarama.ErrInvalidRequiredAcks:                configuration,
	sarama.ErrOffsetMetadataTooLarge:             configuration, // the brokers' offset.metadata.max.bytes is too small
	sarama.ErrInvalidCommitOffsetSize:            configuration,
	sarama.ErrMessageSizeTooLarge:                configuration, // sizes are checked before: the topic's limit is below ours
	sarama.ErrMessageSetSizeTooLarge:             configuration,
	sarama.ErrInvalidTimestamp:                   configuration,
	sarama.ErrInvalidRecord:                      configuration,
}

// kindOf sorts an error of any origin.
func kindOf(err error) kind {
	var (
		code  sarama.KError
		gone  *OffsetGone
		local sarama.PacketEncodingError
		wrong sarama.ConfigurationError
	)
	switch {
	case errors.As(err, &code):
		return kinds[code]
	case errors.As(err, &wrong):
		return configuration
	case errors.As(err, &gone), errors.As(err, &local), errors.Is(err, errOldFormat), errors.Is(err, errDamaged),
		errors.Is(err, sarama.ErrClosedClient), errors.Is(err, eos.ErrLost):
		return recoverable // asking again brings the same answer
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
	case errors.Is(err, sarama.ErrProducerFenced):
		return fmt.Errorf("PRODUCER_FENCED: a newer producer epoch, or the transaction timed out (%w)", err)
	case errors.Is(err, errTransactionAbortable):
		return fmt.Errorf("TRANSACTION_ABORTABLE (%w)", err)
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
