package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// PingStep is one step on the way to the cluster, and how it went.
type PingStep struct {
	Name   string // dns, tcp, tls, sasl, metadata, topic, group, transaction
	Target string // what was asked: an address, a topic, a group
	Detail string // what was found; empty after an error
	Took   time.Duration
	Err    error
}

// PingTopic is a topic that the job needs, and what for.
type PingTopic struct {
	Name  string
	Write bool // else: read
}

// Ping walks the way that a replica goes, step by step, and reports each. It changes nothing: the transactional id that
// it tries is one that no replica has. A step that fails ends the way to its broker or topic; what does not need it is still
// tried. The error is that of the first step that failed.
func Ping(ctx context.Context, c Config, topics []PingTopic, report func(PingStep)) error {
	p := &ping{config: c, report: report}
	if _, err := c.sarama(); err != nil {
		p.step("settings", "kafka.tls, kafka.sasl", func() (string, error) { return "", err })
		return p.failed
	}
	for _, addr := range c.Brokers {
		if p.broker(ctx, addr) && p.reached == "" {
			p.reached = addr
		}
	}
	if p.reached != "" {
		p.cluster(topics)
	}
	return p.failed
}

type ping struct {
	config  Config
	report  func(PingStep)
	reached string // the first bootstrap server that answers
	failed  error  // of the first step that failed
}

func (p *ping) step(name, target string, try func() (string, error)) bool {
	began := time.Now()
	detail, err := try()
	if err != nil && p.failed == nil {
		p.failed = fmt.Errorf("%s %s: %w", name, target, err)
	}
	p.report(PingStep{Name: name, Target: target, Detail: detail, Took: time.Since(began), Err: err})
	return err == nil
}

// pingTimeout bounds one step on the network.
const pingTimeout = 5 * time.Second

// broker goes from a name to a connection that is logged in.
func (p *ping) broker(ctx context.Context, addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return p.step("dns", addr, func() (string, error) { return "", err })
	}
	ok := p.step("dns", host, func() (string, error) {
		ctx, cancel := context.WithTimeout(ctx, pingTimeout)
		defer cancel()
		found, err := net.DefaultResolver.LookupHost(ctx, host)
		return strings.Join(found, " "), err
	})
	if !ok {
		return false
	}
	var conn net.Conn
	if !p.step("tcp", addr, func() (string, error) { return dialTCP(ctx, addr, &conn) }) {
		return false
	}
	defer func() { _ = conn.Close() }() // nothing was asked over it
	if p.config.Security.TLS.Enabled {
		if !p.step("tls", addr, func() (string, error) { return p.handshake(ctx, &conn, addr) }) {
			return false
		}
	}
	name := "kafka"
	if p.config.Security.SASL.Mechanism != "" {
		name = "sasl"
	}
	return p.step(name, addr, func() (string, error) { return p.login(addr) })
}

func dialTCP(ctx context.Context, addr string, conn *net.Conn) (string, error) {
	d := net.Dialer{Timeout: pingTimeout}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	*conn = c
	return "connected from " + c.LocalAddr().String(), nil
}

func (p *ping) handshake(ctx context.Context, conn *net.Conn, addr string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	c, err := p.config.Security.TLS.handshake(ctx, *conn, addr)
	var certificate *tls.CertificateVerificationError
	if err != nil && !errors.As(err, &certificate) {
		return "", fmt.Errorf("%w: does this port speak TLS, and does it want a client certificate?", err)
	}
	if err != nil {
		return "", err
	}
	*conn = c
	t, ok := c.(*tls.Conn)
	if !ok {
		return "encrypted", nil
	}
	s := t.ConnectionState()
	return tls.VersionName(s.Version) + ", certificate of " + s.PeerCertificates[0].Subject.String() +
		" valid until " + s.PeerCertificates[0].NotAfter.UTC().Format(time.DateOnly), nil
}

// login opens a connection the way that all of ours are opened: versions are agreed on, then SASL.
func (p *ping) login(addr string) (string, error) {
	c, err := p.config.sarama()
	if err != nil {
		return "", err
	}
	c.Net.DialTimeout, c.Net.ReadTimeout, c.Net.WriteTimeout = pingTimeout, pingTimeout, pingTimeout
	b, err := open(addr, c)
	if err != nil {
		return "", explainLogin(p.config.Security, err)
	}
	defer closeBroker(b)
	if _, err := b.GetMetadata(&sarama.MetadataRequest{Version: 5, Topics: []string{anyTopic}}); err != nil {
		return "", explainLogin(p.config.Security, err)
	}
	if m := p.config.Security.SASL.Mechanism; m != "" {
		return "logged in with " + m, nil
	}
	return "a broker answers, without a login", nil
}

// explainLogin says what a connection that is cut off without a word usually means.
func explainLogin(s Security, err error) error {
	var code sarama.KError
	var timeout net.Error
	if errors.As(err, &code) {
		return err
	}
	switch {
	case !s.TLS.Enabled:
		return fmt.Errorf("%w: the port takes connections and does not speak plain Kafka; does it want kafka.tls or kafka.sasl?", err)
	case s.SASL.Mechanism == "":
		return fmt.Errorf("%w: the connection is encrypted and the broker does not answer; does it want kafka.sasl or a client certificate?", err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%w: the broker did not answer the login in %s", err, pingTimeout)
	}
	return fmt.Errorf("%w: the broker ended the connection during the SASL login; are the mechanism, the username and the password right?", err)
}

// cluster asks what needs more than one connection: topics, the group's coordinator, the transactions' coordinator.
func (p *ping) cluster(topics []PingTopic) {
	known := p.step("metadata", p.reached, func() (string, error) {
		m, err := p.metadata([]string{anyTopic})
		if err != nil {
			return "", err
		}
		if silent := unreachable(m.Brokers); len(silent) > 0 {
			return "", fmt.Errorf("the cluster's brokers name themselves %s, which cannot be reached from here; check advertised.listeners", strings.Join(silent, ", "))
		}
		return fmt.Sprintf("%d brokers, cluster %s", len(m.Brokers), text(m.ClusterID)), nil
	})
	if !known {
		return
	}
	for _, t := range topics {
		p.step("topic", t.Name, func() (string, error) { return p.topic(t) })
	}
	client, err := Connect(p.config)
	if err != nil {
		p.step("group", p.config.Group, func() (string, error) { return "", err })
		return
	}
	defer func() { _ = client.Close() }() // it is of no further use
	p.step("group", p.config.Group, client.pingGroup)
	if p.config.ExactlyOnce {
		id := p.config.Group + "-ping"
		p.step("transaction", id, func() (string, error) { return client.pingTransaction(id) })
	}
}

// metadata asks the broker that was reached, over a connection of its own.
func (p *ping) metadata(topics []string) (*sarama.MetadataResponse, error) {
	c, err := p.config.sarama()
	if err != nil {
		return nil, err
	}
	b, err := open(p.reached, c)
	if err != nil {
		return nil, err
	}
	defer closeBroker(b)
	return b.GetMetadata(&sarama.MetadataRequest{Version: 8, Topics: topics, IncludeTopicAuthorizedOperations: true})
}

// unreachable lists the addresses that the brokers advertise and do not answer at.
func unreachable(brokers []*sarama.Broker) (addrs []string) {
	for _, b := range brokers {
		conn, err := net.DialTimeout("tcp", b.Addr(), pingTimeout)
		if err != nil {
			addrs = append(addrs, b.Addr())
			continue
		}
		_ = conn.Close() // that it opened is the answer
	}
	slices.Sort(addrs)
	return addrs
}

// Bits of a topic's authorized operations, as Kafka numbers them.
const (
	mayRead  = 1 << 3
	mayWrite = 1 << 4
	unknown  = -1 << 31 // the broker does not tell
)

func (p *ping) topic(t PingTopic) (string, error) {
	m, err := p.metadata([]string{t.Name})
	if err != nil {
		return "", err
	}
	if len(m.Topics) == 0 {
		return "", sarama.ErrUnknownTopicOrPartition
	}
	found := m.Topics[0]
	switch err := asError(found.Err); {
	case errors.Is(err, sarama.ErrUnknownTopicOrPartition):
		return "", fmt.Errorf("it does not exist, or may not be described: %w", err)
	case err != nil:
		return "", err
	}
	verb, bit := "read", int32(mayRead)
	if t.Write {
		verb, bit = "write", mayWrite
	}
	detail := fmt.Sprintf("%d partitions", len(found.Partitions))
	switch operations := found.TopicAuthorizedOperations; {
	case operations == unknown:
		return detail + ", permissions unknown", nil
	case operations&bit == 0:
		return "", fmt.Errorf("it exists, and this login may not %s it; `millrace explain --acls` lists what is needed", verb)
	}
	return detail + ", may " + verb, nil
}

func (c *Client) pingGroup() (string, error) {
	b, err := c.sarama.Coordinator(c.config.Group)
	if err != nil {
		return "", err
	}
	request := &sarama.OffsetFetchRequest{Version: 7, ConsumerGroup: c.config.Group}
	request.AddPartition(c.config.Group+"-ping", 0) // without one it would ask for all
	response, err := b.FetchOffset(request)
	if err != nil {
		return "", err
	}
	if err := asError(response.Err); err != nil && !errors.Is(err, sarama.ErrGroupIDNotFound) { // not found: it has not started yet
		return "", err
	}
	return "coordinator " + b.Addr(), nil
}

func (c *Client) pingTransaction(id string) (string, error) {
	b, err := c.sarama.TransactionCoordinator(id)
	if err != nil {
		return "", err
	}
	response, err := b.InitProducerID(&sarama.InitProducerIDRequest{Version: 4, TransactionalID: &id,
		TransactionTimeout: c.config.TransactionTimeout, ProducerID: -1, ProducerEpoch: -1})
	if err != nil {
		return "", err
	}
	return "coordinator " + b.Addr(), asError(response.Err)
}
