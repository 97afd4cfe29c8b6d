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
	// Requested is told of each request of fetching, producing, restoring and committing: its api, whether the answer was
	// ok, an error or none (unanswered), and how long it took. It may be nil, and is called from several goroutines.
	Requested func(api, result string, took time.Duration)
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
	dialerOf(s) // on every connection, so that peers which vanish are noticed before a read timeout of minutes
	return s, nil
}

// Connect makes sure that a broker answers and lets us in, and returns the client. The caller closes it.
func Connect(c Config) (*Client, error) {
	base, err := c.sarama()
	if err != nil {
		return nil, err
	}
	if err := base.Validate(); err != nil {
		return nil, err
	}
	if err := reach(c.Brokers, base); err != nil {
		return nil, explainConnect(c, err)
	}
	client, err := sarama.NewClient(c.Brokers, base)
	if err != nil {
		return nil, explainConnect(c, err)
	}
	return &Client{config: c, sarama: client, base: base, faults: &Faults{}}, nil
}

// reach tries the brokers until one answers. sarama would not before the first request, and its error then does not
// tell which broker said what.
func reach(brokers []string, config *sarama.Config) error {
	var errs []error
	for _, addr := range brokers {
		b, err := open(addr, config)
		if err == nil {
			closeBroker(b)
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func explainConnect(c Config, err error) error {
	return fmt.Errorf("no broker of %v answers (a wrong address, TLS and SASL settings look much the same from here; `millrace kafka ping` tells which): %w", c.Brokers, err)
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
