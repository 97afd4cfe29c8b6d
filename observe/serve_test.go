package observe

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Serve over a real socket: the address is known at once, answers come, the end is clean.
func TestServe(t *testing.T) {
	s := newStory(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	addr, done, err := s.Serve(ctx, "127.0.0.1:0", s.Handler(Pages{}))
	if err != nil {
		t.Fatal(err)
	}
	if out := s.out.take(); !strings.Contains(out, "address="+addr) || strings.Contains(out, "WARN") {
		t.Errorf("log: %s", out)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get("http://" + addr + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(r.Body)
	r.Body.Close()
	if r.StatusCode != 200 || string(body) != "ok\n" {
		t.Errorf("%d %q", r.StatusCode, body)
	}
	if r = oversized(t, client, addr); r.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 64 KiB gets %d", r.StatusCode)
	}
	if _, _, err := s.Serve(ctx, addr, nil); err == nil || !strings.Contains(err.Error(), "http.listen "+addr) {
		t.Errorf("taken address: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func oversized(t *testing.T, client *http.Client, addr string) *http.Response {
	req, _ := http.NewRequest("GET", "http://"+addr+"/livez", nil)
	req.Header.Set("X-Long", strings.Repeat("x", 64<<10))
	r, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	return r
}

func TestServeWarnsWhenOpenToOthers(t *testing.T) {
	s := newStory(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	_, done, err := s.Serve(ctx, ":0", s.Handler(Pages{}))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	if out := s.out.take(); !strings.Contains(out, "MR5002") {
		t.Errorf("%s", out)
	}
}

// A connection beyond the limit waits until another one ends, and a closed listener lets nobody wait.
func TestConnectionsAreLimited(t *testing.T) { synctest.Test(t, connectionsAreLimited) }

func connectionsAreLimited(t *testing.T) {
	l := &limitListener{fakeListener{}, make(chan struct{}, 1), make(chan struct{})}
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	var accepted atomic.Int32
	accept := func() {
		if _, err := l.Accept(); err == nil {
			accepted.Add(1)
		}
	}
	go accept()
	go accept()
	synctest.Wait()
	if n := accepted.Load(); n != 0 {
		t.Fatalf("%d connections beyond the limit", n)
	}
	if err := errors.Join(first.Close(), first.Close()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	if n := accepted.Load(); n != 1 {
		t.Fatalf("%d connections in one free slot: a second Close must not give back another", n)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // the last goroutine ends, or synctest reports it
}

// fakeListener always has a connection waiting.
type fakeListener struct{}

func (fakeListener) Accept() (net.Conn, error) { return fakeConn{}, nil }
func (fakeListener) Close() error              { return nil }
func (fakeListener) Addr() net.Addr            { return nil }

type fakeConn struct{ net.Conn }

func (fakeConn) Close() error { return nil }
