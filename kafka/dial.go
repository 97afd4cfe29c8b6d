package kafka

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

// Faults counts what went wrong on connections after they were opened: read and write errors, timeouts, and closes by
// the other side. Whoever reads a number that has grown knows that a request may still be on its way.
type Faults struct{ n atomic.Int64 }

// Load returns the count. It never goes down.
func (f *Faults) Load() int64 { return f.n.Load() }

// count makes the connections that c opens from now on report here.
func (f *Faults) count(c *sarama.Config) { dialerOf(c).faults = f }

// Peers that vanish without a word are noticed by these, although the read timeout of a consumer is long: it waits for
// whole rebalances.
const (
	userTimeout       = 10 * time.Second // for the acknowledgement of what was sent
	keepAliveIdle     = 10 * time.Second
	keepAliveInterval = 5 * time.Second
	keepAliveCount    = 3
)

// dialer opens connections for sarama. TLS happens here and not in sarama, for three reasons: certificates are read anew
// for each connection, the handshake is under the dial timeout, and a close that TLS announces is seen by faults.
type dialer struct {
	tcp    net.Dialer
	tls    TLS
	faults *Faults // nil: not counted
}

// dialerOf returns c's dialer. It installs one where there is none; c's dial timeout is used as it is then.
func dialerOf(c *sarama.Config) *dialer {
	if d, ok := c.Net.Proxy.Dialer.(*dialer); ok {
		return d
	}
	d := &dialer{tcp: net.Dialer{
		Timeout:   c.Net.DialTimeout,
		LocalAddr: c.Net.LocalAddr,
		Control:   setUserTimeout,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount,
		},
	}}
	c.Net.Proxy.Enable = true
	c.Net.Proxy.Dialer = d
	return d
}

// Dial opens a connection to a broker. Its errors name the step: dial, or tls handshake.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if d.tcp.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, d.tcp.Timeout)
	}
	defer cancel()
	conn, err := d.tcp.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	if d.tls.Enabled {
		if conn, err = d.tls.handshake(ctx, conn, address); err != nil {
			return nil, err
		}
	}
	if d.faults != nil {
		conn = &countedConn{Conn: conn, faults: d.faults}
	}
	return conn, nil
}

// countedConn counts the faults of one connection, until we close it ourselves.
type countedConn struct {
	net.Conn
	faults *Faults
	closed atomic.Bool
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.note(err)
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.note(err)
	return n, err
}

func (c *countedConn) note(err error) {
	if err != nil && !c.closed.Load() {
		c.faults.n.Add(1)
	}
}

func (c *countedConn) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}
