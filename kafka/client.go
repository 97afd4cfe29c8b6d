// Package kafka speaks to the brokers: membership, fetching, the transactional producer, topics and offsets. It is the
// only importer of sarama, whose protocol it uses and whose record path it replaces: batches are fetched and produced
// whole, by our own loops over private connections.
package kafka

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/rcrowley/go-metrics"
)

// Config is what a Client needs to know. Zero values are not defaults: package config has those.
type Config struct {
	Brokers            []string
	ClientID           string
	Group              string                // the application id
	InstanceID         string                // empty: a dynamic member
	FormerMember       string                // of a dynamic member's former life, which is over for sure; empty: unknown
	Joined             func(memberID string) // told after each join of a dynamic member; may be nil
	TransactionalID    string
	SessionTimeout     time.Duration
	Heartbeat          time.Duration
	RebalanceTimeout   time.Duration
	FetchMaxBytes      int32
	FetchMaxWait       time.Duration
	Compression        string
	MaxBatchBytes      int
	TransactionTimeout time.Duration
	ExactlyOnce        bool
	Security           Security
}

// Client is the process's way to the cluster. Discovery goes through one sarama client; fetching and producing have
// connections of their own, because a sarama Broker serves one synchronous request at a time.
type Client struct {
	config Config
	sarama sarama.Client
	base   *sarama.Config
	faults *Faults // of the producer's connections

	mu     sync.Mutex
	closed bool
}

func init() {
	// The registry costs two lookups a request and nobody reads it; it must be off before the first config is made.
	metrics.UseNilMetrics = true
	sarama.MaxResponseSize = 256 << 20
	sarama.MaxDecompressedBatchSize = 256 << 20
}

// version is high on purpose: every request is clamped to what the broker offers.
var version = sarama.V3_6_0_0

func (c Config) sarama() (*sarama.Config, error) {
	s := sarama.NewConfig()
	s.Version = version
	s.ClientID = c.ClientID
	s.Metadata.AllowAutoTopicCreation = false
	s.Metadata.Full = false
	s.Metadata.RefreshFrequency = 2 * time.Minute
	s.Metadata.Retry.Max = 3
	s.Net.DialTimeout = 5 * time.Second
	s.Net.ReadTimeout = 10 * time.Second
	s.Net.WriteTimeout = 10 * time.Second
	s.Consumer.IsolationLevel = sarama.ReadCommitted
	s.Consumer.Offsets.AutoCommit.Enable = false
	s.Consumer.Offsets.Initial = sarama.OffsetOldest
	s.Consumer.Group.ResetInvalidOffsets = false
	s.Consumer.Return.Errors = true
	if err := c.Security.apply(s); err != nil {
		return nil, err
	}
	return s, nil
}

// Connect dials the cluster.
func Connect(c Config) (*Client, error) {
	base, err := c.sarama()
	if err != nil {
		return nil, err
	}
	if err := base.Validate(); err != nil {
		return nil, err
	}
	client, err := sarama.NewClient(c.Brokers, base)
	if err != nil {
		return nil, explainConnect(c, err)
	}
	return &Client{config: c, sarama: client, base: base, faults: &Faults{}}, nil
}

func explainConnect(c Config, err error) error {
	if errors.Is(err, sarama.ErrOutOfBrokers) {
		return fmt.Errorf("no broker of %v answers (wrong address, TLS or SASL settings look the same from here; `millrace kafka ping` tells which): %w", c.Brokers, err)
	}
	return fmt.Errorf("connect to %v: %w", c.Brokers, err)
}

// Close closes the client. Fetchers, producers and memberships made from it are closed by their owners before.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	return c.sarama.Close()
}

// Partitions returns the number of a topic's partitions.
func (c *Client) Partitions(topic string) (int32, error) {
	if err := c.sarama.RefreshMetadata(topic); err != nil {
		return 0, fmt.Errorf("topic %s: %w", topic, err)
	}
	p, err := c.sarama.Partitions(topic)
	if err != nil {
		return 0, fmt.Errorf("topic %s: %w", topic, err)
	}
	return int32(len(p)), nil
}

// open dials a broker for our own use, with the settings of config.
func open(addr string, config *sarama.Config) (*sarama.Broker, error) {
	b := sarama.NewBroker(addr)
	if err := b.Open(config); err != nil && !errors.Is(err, sarama.ErrAlreadyConnected) {
		return nil, err
	}
	if ok, err := b.Connected(); !ok {
		if err == nil {
			err = sarama.ErrNotConnected
		}
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	return b, nil
}

func closeBroker(b *sarama.Broker) {
	if b != nil {
		_ = b.Close() // it may never have connected, or be broken: that is why it is closed
	}
}

// Describe returns the number of brokers and the cluster's own name; zero values if the brokers do not tell.
func (c *Client) Describe() (brokers int, cluster string) {
	m, err := c.metadata(nil)
	if err != nil {
		return 0, ""
	}
	return len(m.Brokers), text(m.ClusterID)
}

// Existing returns the number of partitions of those topics that exist. It asks once and does not wait for a topic to
// appear.
func (c *Client) Existing(topics []string) (map[string]int32, error) {
	m, err := c.metadata(topics)
	if err != nil {
		return nil, fmt.Errorf("look for topics: %w", err)
	}
	found := map[string]int32{}
	for _, t := range m.Topics {
		switch err := asError(t.Err); {
		case err == nil:
			found[t.Name] = int32(len(t.Partitions))
		case kindOf(err) == configuration:
			return nil, reaction("look for topic "+t.Name, err)
		}
	}
	return found, nil
}

func (c *Client) metadata(topics []string) (m *sarama.MetadataResponse, err error) {
	b := c.sarama.LeastLoadedBroker()
	if b == nil {
		return nil, sarama.ErrOutOfBrokers
	}
	if topics == nil {
		topics = []string{} // none; nil would ask for all
	}
	return b.GetMetadata(&sarama.MetadataRequest{Version: 5, Topics: topics})
}
