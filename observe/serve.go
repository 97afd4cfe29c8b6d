package observe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// DefaultListen is where the HTTP interface listens unless it is told otherwise: reachable from this host only.
const DefaultListen = "127.0.0.1:8080"

const (
	maxConnections = 128              // at a time; further ones wait in the kernel's queue
	httpStop       = 2 * time.Second  // what running answers get when the instance stops
	headerTimeout  = 5 * time.Second  // for a request's headers
	answerTimeout  = 30 * time.Second // for a whole answer
	idleTimeout    = 60 * time.Second
)

// Serve listens on the given address (DefaultListen when empty; port 0 takes a free one) and answers with h until ctx
// is done. It returns the bound address at once; done delivers one value when the server has stopped: nil, or why.
func (o *Observer) Serve(ctx context.Context, listen string, h http.Handler) (addr string, done <-chan error, err error) {
	if listen == "" {
		listen = DefaultListen
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", listen)
	if err != nil {
		return "", nil, fmt.Errorf("http.listen %s: %w; choose another address, or port 0 for a free one", listen, err)
	}
	addr = l.Addr().String()
	o.log.Info("http listening", zap.String("address", addr))
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		o.warn(zapcore.WarnLevel, "MR5002", "http open to other hosts", nil, zap.String("address", addr))
	}
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: answerTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: 16 << 10,
		ErrorLog: zap.NewStdLog(zap.NewNop()), // it only tells of clients that broke off
	}
	stopped := make(chan error, 1)
	go func() { stopped <- serveUntil(ctx, server, limited(l)) }()
	return addr, stopped, nil
}

// serveUntil runs the server and shuts it down when ctx is done. It returns when both are over.
func serveUntil(ctx context.Context, server *http.Server, l net.Listener) error {
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("http server on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), httpStop)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		// Somebody is still reading a slow answer. Nothing is lost by cutting it off.
		_ = server.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("http server on %s: %w", l.Addr(), err)
	}
	return nil
}

// limitListener bounds the open connections, so that a client cannot take all file descriptors from the stores.
type limitListener struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
}

func limited(l net.Listener) net.Listener {
	return &limitListener{l, make(chan struct{}, maxConnections), make(chan struct{})}
}

func (l *limitListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitConn{Conn: c, slots: l.slots}, nil
}

// Close is called once by http.Server.
func (l *limitListener) Close() error {
	close(l.closed)
	return l.Listener.Close()
}

// limitConn gives its slot back when it is closed.
type limitConn struct {
	net.Conn
	slots <-chan struct{}
	once  sync.Once
}

func (c *limitConn) Close() error {
	c.once.Do(func() { <-c.slots })
	return c.Conn.Close()
}
