package kafka

import (
	"context"
	"fmt"
	"time"

	"millrace/crash"
	"millrace/eos"

	"github.com/IBM/sarama"
)

// CommitOffsets implements eos.Producer. The request is sent under the membership's gate, with the generation that is
// valid then; owned is asked there too. Without offsets there is nothing to fence, and nothing is asked.
func (p *Producer) CommitOffsets(ctx context.Context, offsets []eos.InputOffset, owned func() bool) error {
	if len(offsets) == 0 {
		return nil
	}
	if err := p.addOffsets(ctx); err != nil {
		p.ready = false
		return reaction("add offsets to the transaction", p.client.config.denied(err, ""))
	}
	crash.At("commit.offsets_added")
	err := p.membership.underGeneration(ctx, func(m member) error {
		if !owned() {
			return fmt.Errorf("a task of the epoch was given up: %w", eos.ErrLost)
		}
		return retry(ctx, func() error { return p.commitOffsets(offsets, m) })
	})
	if err != nil {
		p.ready = false
		return reaction("commit offsets", err)
	}
	return nil
}

func (p *Producer) addOffsets(ctx context.Context) error {
	if p.transactionalID() == nil {
		return nil
	}
	return p.coordinated(ctx, "add_offsets_to_txn", func(b *sarama.Broker) (sarama.KError, error) {
		response, err := b.AddOffsetsToTxn(&sarama.AddOffsetsToTxnRequest{Version: 3, TransactionalID: *p.transactionalID(),
			ProducerID: p.id, ProducerEpoch: p.epoch, GroupID: p.client.config.Group})
		if err != nil {
			return sarama.ErrNoError, err
		}
		return response.Err, nil
	})
}

func (p *Producer) commitOffsets(offsets []eos.InputOffset, m member) error {
	b, err := p.groupCoordinator()
	if err == nil {
		begun, api := time.Now(), "txn_offset_commit"
		if p.transactionalID() != nil {
			err = p.txnOffsetCommit(b, offsets, m)
		} else {
			api, err = "offset_commit", p.offsetCommit(b, offsets, m)
		}
		p.client.requested(api, begun, err)
	}
	if err != nil && kindOf(err) == retriable {
		p.ready = false // a repetition: the first may still be on its way
		closeBroker(p.group)
		p.group = nil
		_ = p.client.sarama.RefreshCoordinator(p.client.config.Group) // the next attempt reports what is wrong
	}
	return err
}

func (p *Producer) groupCoordinator() (*sarama.Broker, error) {
	if p.group != nil {
		return p.group, nil
	}
	known, err := p.client.sarama.Coordinator(p.client.config.Group)
	if err != nil {
		return nil, err
	}
	p.group, err = open(known.Addr(), p.config)
	return p.group, err
}

func (p *Producer) txnOffsetCommit(b *sarama.Broker, offsets []eos.InputOffset, m member) error {
	topics := map[string][]*sarama.PartitionOffsetMetadata{}
	for _, o := range offsets {
		topics[o.Topic] = append(topics[o.Topic], &sarama.PartitionOffsetMetadata{Partition: o.Partition, Offset: o.Next,
			LeaderEpoch: -1, Metadata: &o.Metadata})
	}
	response, err := b.TxnOffsetCommit(&sarama.TxnOffsetCommitRequest{Version: 3, TransactionalID: *p.transactionalID(), GroupID: p.client.config.Group,
		ProducerID: p.id, ProducerEpoch: p.epoch, GenerationID: m.Generation.ID, MemberID: m.MemberID, GroupInstanceID: m.instance, Topics: topics})
	if err != nil {
		return err
	}
	return p.client.config.denied(asError(worst(response.Topics)), "Read", refused(response.Topics)...)
}

func (p *Producer) offsetCommit(b *sarama.Broker, offsets []eos.InputOffset, m member) error {
	request := &sarama.OffsetCommitRequest{Version: 7, ConsumerGroup: p.client.config.Group, ConsumerGroupGeneration: m.Generation.ID,
		ConsumerID: m.MemberID, GroupInstanceId: m.instance}
	for _, o := range offsets {
		request.AddBlockWithLeaderEpoch(o.Topic, o.Partition, o.Next, -1, 0, o.Metadata)
	}
	response, err := b.CommitOffset(request)
	if err != nil {
		return err
	}
	for topic, partitions := range response.Errors {
		for _, code := range partitions {
			if err := asError(code); err != nil {
				return p.client.config.denied(err, "Read", topic)
			}
		}
	}
	return nil
}
