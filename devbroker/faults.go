package devbroker

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Request keys of the Kafka protocol, for the fault methods.
const (
	Produce          int16 = 0
	Fetch            int16 = 1
	ListOffsets      int16 = 2
	Metadata         int16 = 3
	OffsetCommit     int16 = 8
	OffsetFetch      int16 = 9
	FindCoordinator  int16 = 10
	JoinGroup        int16 = 11
	Heartbeat        int16 = 12
	LeaveGroup       int16 = 13
	SyncGroup        int16 = 14
	CreateTopics     int16 = 19
	InitProducerID   int16 = 22
	AddPartitions    int16 = 24
	AddOffsets       int16 = 25
	EndTxn           int16 = 26
	TxnOffsetCommit  int16 = 28
	AlterConfigs     int16 = 44 // incremental
	CreatePartitions int16 = 37
)

// Always as a number of times keeps a fault until it is removed.
const Always = -1

// Fault is an injected fault at work. It ends by itself after its number of requests.
type Fault struct{ injected }

type injected interface {
	// Hits is how many requests the fault has met so far.
	Hits() int
	// Wait returns when the fault has met n requests, or with the context's error.
	Wait(ctx context.Context, n int) error
	// Remove ends the fault. A request that it has met already keeps its fate.
	Remove()
}

// Fail answers the next requests of one kind with an error code of Kafka instead of handling them. REQUEST_TIMED_OUT
// (7) on requests that a real broker may answer so after its work (Produce, TxnOffsetCommit, …) is sent after the work.
func (b *Broker) Fail(apiKey int16, times int, code int16) *Fault {
	return &Fault{b.cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Key(apiKey)}, Count: times, Err: kerr.TypedErrorForCode(code),
		TopLevel: oneCode(apiKey),
	})}
}

// oneCode tells the requests whose answer has one code for everything. kfake would otherwise look for the group or the
// transactional id first, and answer with that error.
func oneCode(apiKey int16) bool {
	switch apiKey {
	case JoinGroup, SyncGroup, Heartbeat, LeaveGroup, InitProducerID, AddOffsets, EndTxn:
		return true
	}
	return false
}

// FailTopic is Fail for one topic only: the answer's other topics are real.
func (b *Broker) FailTopic(topic string, apiKey int16, times int, code int16) *Fault {
	return &Fault{b.cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Key(apiKey)}, Count: times, Err: kerr.TypedErrorForCode(code), Topic: topic,
	})}
}

// Count only counts the requests of one kind.
func (b *Broker) Count(apiKey int16) *Fault {
	return b.wires.add(&rule{apiKey: apiKey, left: Always})
}

// DropRequest cuts the connection when a request of the kind arrives, before the broker sees it.
func (b *Broker) DropRequest(apiKey int16, times int) *Fault {
	return b.wires.add(&rule{apiKey: apiKey, left: times, dropRequest: true})
}

// DropResponse lets the broker handle the request and cuts the connection instead of answering: the client cannot know
// what became of it.
func (b *Broker) DropResponse(apiKey int16, times int) *Fault {
	return b.wires.add(&rule{apiKey: apiKey, left: times, dropResponse: true})
}

// Delay handles the request at once and holds the answer back. Answers behind it on its connection wait too.
func (b *Broker) Delay(apiKey int16, times int, by time.Duration) *Fault {
	return b.wires.add(&rule{apiKey: apiKey, left: times, delay: by})
}

// Hold keeps requests of the kind from the broker until release is called, and those that come later not at all. Each
// connection is held by its first such request. It stands for a request that arrives late.
func (b *Broker) Hold(apiKey int16) (fault *Fault, release func()) {
	r := &rule{apiKey: apiKey, left: Always, held: make(chan struct{})}
	fault = b.wires.add(r)
	return fault, func() {
		fault.Remove()
		r.releaseOnce.Do(func() { close(r.held) })
	}
}

// MoveCoordinators gives groups and transactional ids to other brokers; with one broker it changes nothing.
func (b *Broker) MoveCoordinators() { b.cluster.RehashCoordinators() }

// MoveLeaders deals the partitions out anew over the brokers; each leader epoch goes up.
func (b *Broker) MoveLeaders() { b.cluster.ShufflePartitionLeaders() }

// MoveLeader makes a broker the leader of a partition.
func (b *Broker) MoveLeader(topic string, partition, node int32) error {
	if err := b.cluster.MoveTopicPartition(topic, partition, node); err != nil {
		return fmt.Errorf("move %s-%d to broker %d: %w", topic, partition, node, err)
	}
	return nil
}

// CutConnections closes every client connection, as a broker that is restarted does.
func (b *Broker) CutConnections() { b.wires.cut() }
