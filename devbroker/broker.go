// Package devbroker runs a Kafka broker inside the process: for `dev`, where no Kafka is at hand, and for tests, which
// break it on purpose. It is the only importer of kfake. Its Client works against any broker, a real one included.
package devbroker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Options says what Start starts. The zero value is one broker on a free port that forgets everything.
type Options struct {
	Port    int              // of the first broker, the others take the next ones; 0: free ports
	Brokers int              // 0: one
	DataDir string           // where topics, offsets and transactions are kept; empty: in memory
	Topics  map[string]int32 // partitions by name; those that exist already are left as they are

	TLS   *tls.Config // nil: plain text
	Users []User      // none: everybody is let in
	// AcceptToken, when set, makes the broker speak OAUTHBEARER: it is asked about every bearer token that comes.
	AcceptToken func(token string) bool
}

// User may log in with the mechanism PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
type User struct{ Mechanism, Name, Password string }

// shortestSession lets tests see a dead member leave its group soon; Kafka's own minimum is six seconds.
const shortestSession = 100 * time.Millisecond

// Broker is a running cluster of one or more brokers. Its methods may be called from any goroutine.
type Broker struct {
	cluster *kfake.Cluster
	wires   *wires
}

// Start starts the brokers on 127.0.0.1. The caller closes the Broker. With a DataDir every write is on disk before it
// is answered, so that a start goes on where the last one was stopped or killed.
func Start(o Options) (*Broker, error) {
	w := newWires()
	options := []kfake.Opt{
		kfake.ClusterID("millrace-dev"),
		kfake.NumBrokers(max(o.Brokers, 1)),
		kfake.GroupMinSessionTimeout(shortestSession),
		kfake.ListenFn(func(network, address string) (net.Listener, error) {
			l, err := net.Listen(network, address)
			if err != nil {
				return nil, err
			}
			if o.TLS != nil {
				// Below the wires, so that they see requests and not cipher text.
				l = tls.NewListener(l, o.TLS)
			}
			return &listener{Listener: l, wires: w}, nil
		}),
	}
	if o.Port != 0 {
		ports := make([]int, max(o.Brokers, 1))
		for i := range ports {
			ports[i] = o.Port + i
		}
		options = append(options, kfake.Ports(ports...))
	}
	if o.DataDir != "" {
		if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
			return nil, fmt.Errorf("start development broker: data directory: %w", err)
		}
		options = append(options, kfake.DataDir(o.DataDir), kfake.SyncWrites())
	}
	if len(o.Users) > 0 {
		options = append(options, kfake.EnableSASL())
	}
	for _, u := range o.Users {
		options = append(options, kfake.Superuser(u.Mechanism, u.Name, u.Password))
	}
	cluster, err := kfake.NewCluster(options...)
	if err != nil {
		return nil, startError(o, err)
	}
	b := &Broker{cluster: cluster, wires: w}
	if o.AcceptToken != nil {
		b.speakOAuth(o.AcceptToken)
	}
	if err := b.createMissing(o.Topics); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// startError adds what the person in front of `dev` can do.
func startError(o Options, err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "listen" {
		return fmt.Errorf("start development broker on port %d: %w; choose another port, or 0 for a free one", o.Port, err)
	}
	if o.DataDir != "" {
		return fmt.Errorf("start development broker with data in %s: %w; remove that directory to start over", o.DataDir, err)
	}
	return fmt.Errorf("start development broker: %w", err)
}

func (b *Broker) createMissing(topics map[string]int32) error {
	for name, partitions := range topics {
		if b.cluster.TopicInfo(name) != nil {
			continue
		}
		if err := b.CreateTopic(name, partitions, nil); err != nil {
			return err
		}
	}
	return nil
}

// Addr is host:port of every broker, separated by commas: what bootstrap.servers takes.
func (b *Broker) Addr() string { return strings.Join(b.cluster.ListenAddrs(), ",") }

// Ports are the brokers' ports, in the order of their node ids.
func (b *Broker) Ports() []int {
	var ports []int
	for _, address := range b.cluster.ListenAddrs() {
		_, port, _ := net.SplitHostPort(address) // The listener wrote it, so it splits.
		n, _ := strconv.Atoi(port)
		ports = append(ports, n)
	}
	return ports
}

// Close stops the brokers and cuts all connections. With a DataDir everything is on disk when it returns. A second call
// does nothing.
func (b *Broker) Close() {
	b.cluster.Close()
	b.wires.close()
}

// CreateTopic creates a topic without going through the protocol: no injected fault stops it.
func (b *Broker) CreateTopic(name string, partitions int32, configs map[string]string) error {
	if err := b.cluster.CreateTopic(name, partitions, configs); err != nil {
		return fmt.Errorf("create topic %s: %w", name, err)
	}
	return nil
}

// DeleteTopic deletes a topic; one created later under its name is another topic, with another id.
func (b *Broker) DeleteTopic(name string) error {
	if err := b.cluster.DeleteTopic(name); err != nil {
		return fmt.Errorf("delete topic %s: %w", name, err)
	}
	return nil
}

// DeleteRecords moves a partition's log start to offset, as retention does.
func (b *Broker) DeleteRecords(topic string, partition int32, offset int64) error {
	if err := b.cluster.DeleteRecords(topic, partition, offset); err != nil {
		return fmt.Errorf("delete records of %s-%d below %d: %w", topic, partition, offset, err)
	}
	return nil
}

// Compact runs the log cleaner once over all topics with cleanup.policy=compact.
func (b *Broker) Compact() { b.cluster.Compact() }

// EndOffset is a partition's high watermark, or -1 when there is no such partition.
func (b *Broker) EndOffset(topic string, partition int32) int64 {
	if p := b.cluster.PartitionInfo(topic, partition); p != nil {
		return p.HighWatermark
	}
	return -1
}

// StableOffset is a partition's last stable offset, or -1 when there is no such partition.
func (b *Broker) StableOffset(topic string, partition int32) int64 {
	if p := b.cluster.PartitionInfo(topic, partition); p != nil {
		return p.LastStableOffset
	}
	return -1
}

// GroupState is a group's state in Kafka's words (Stable, Empty, …) and its members; an unknown group is "Dead".
func (b *Broker) GroupState(group string) (state string, members []string) {
	info := b.cluster.GroupInfo(group)
	if info == nil {
		return "Dead", nil
	}
	for _, m := range info.Members {
		members = append(members, m.MemberID)
	}
	slices.Sort(members)
	return info.State, members
}
