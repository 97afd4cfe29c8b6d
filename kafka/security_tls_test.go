package kafka

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"millrace/devbroker"
)

func TestBrokersMustBeSignedByTheAuthority(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	b := startBroker(t, devbroker.Options{TLS: ca.server(t)})
	dir := t.TempDir()
	s := Security{TLS: TLS{Enabled: true, CAFile: writeFile(t, dir, "ca.pem", other.pem())}}
	c := secured(t, s)
	err := login(t, b.Addr(), c)
	if err == nil || !strings.Contains(err.Error(), "tls handshake with "+b.Addr()) {
		t.Errorf("broker of another authority: %v", err)
	}
	// The right authority is put into place while we run: the next connection takes it.
	writeFile(t, dir, "ca.pem", ca.pem())
	if err := login(t, b.Addr(), c); err != nil {
		t.Errorf("after the file was replaced: %v", err)
	}
	s.TLS.CAFile = ""
	if err := login(t, b.Addr(), secured(t, s)); err == nil {
		t.Error("the system's authorities accept a test certificate")
	}
	s.TLS.InsecureSkipVerify = true
	if err := login(t, b.Addr(), secured(t, s)); err != nil {
		t.Errorf("without verification: %v", err)
	}
}

func TestServerNameIsVerified(t *testing.T) {
	ca := newAuthority(t)
	b := startBroker(t, devbroker.Options{TLS: ca.server(t, "broker.internal")})
	s := Security{TLS: TLS{Enabled: true, CAFile: writeFile(t, t.TempDir(), "ca.pem", ca.pem())}}
	if err := login(t, b.Addr(), secured(t, s)); err == nil {
		t.Error("a certificate without the dialled address was accepted")
	}
	s.TLS.ServerName = "broker.internal"
	if err := login(t, b.Addr(), secured(t, s)); err != nil {
		t.Errorf("with the certificate's name: %v", err)
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	ca := newAuthority(t)
	server := ca.server(t)
	server.MinVersion, server.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	b := startBroker(t, devbroker.Options{TLS: server})
	s := Security{TLS: TLS{Enabled: true, CAFile: writeFile(t, t.TempDir(), "ca.pem", ca.pem())}}
	if err := login(t, b.Addr(), secured(t, s)); err == nil {
		t.Error("TLS 1.1 was accepted")
	}
}

func TestClientCertificateIsSentAndRenewed(t *testing.T) {
	ca := newAuthority(t)
	var serial atomic.Int64
	server := ca.server(t)
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, ca.pool()
	server.VerifyConnection = func(state tls.ConnectionState) error {
		serial.Store(state.PeerCertificates[0].SerialNumber.Int64())
		return nil
	}
	b := startBroker(t, devbroker.Options{TLS: server})

	dir := t.TempDir()
	s := Security{TLS: TLS{Enabled: true, CAFile: writeFile(t, dir, "ca.pem", ca.pem())}}
	if err := login(t, b.Addr(), secured(t, s)); err == nil {
		t.Error("no certificate was accepted")
	}
	renew := func(a *authority) {
		cert, key := a.issue(t)
		s.TLS.CertFile, s.TLS.KeyFile = writeFile(t, dir, "cert.pem", cert), writeFile(t, dir, "key.pem", key)
	}
	renew(ca)
	c := secured(t, s)
	for range 2 {
		if err := login(t, b.Addr(), c); err != nil {
			t.Fatal(err)
		}
		if got := serial.Load(); got != ca.serial {
			t.Errorf("the broker saw certificate %d, want %d", got, ca.serial)
		}
		renew(ca) // The same settings use the new one.
	}
	renew(newAuthority(t))
	if err := login(t, b.Addr(), c); err == nil {
		t.Error("a certificate of another authority was accepted")
	}
}

func TestUnusableFilesAreFoundAtTheStart(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	cert, key := ca.issue(t)
	_, otherKey := ca.issue(t)
	good, goodKey := writeFile(t, dir, "cert.pem", cert), writeFile(t, dir, "key.pem", key)
	empty := writeFile(t, dir, "empty.pem", nil)
	missing := filepath.Join(dir, "missing.pem")
	for _, c := range []struct {
		tls  TLS
		want string
	}{
		{TLS{CAFile: missing}, missing},
		{TLS{CAFile: empty}, "holds no PEM certificate"},
		{TLS{CertFile: good}, good},
		{TLS{CertFile: good, KeyFile: missing}, missing},
		{TLS{CertFile: good, KeyFile: empty}, empty},
		{TLS{CertFile: good, KeyFile: writeFile(t, dir, "other.pem", otherKey)}, "does not match"},
		{TLS{CertFile: goodKey, KeyFile: goodKey}, goodKey},
	} {
		c.tls.Enabled = true
		err := Security{TLS: c.tls}.apply(sarama.NewConfig())
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "kafka tls: ") {
			t.Errorf("%+v: %v; want an error with %q", c.tls, err, c.want)
		} else if strings.Contains(err.Error(), "BEGIN") {
			t.Errorf("%+v: the error quotes a file: %v", c.tls, err)
		}
	}
}

func TestAFileThatVanishesStopsTheNextConnectionWithItsName(t *testing.T) {
	ca := newAuthority(t)
	b := startBroker(t, devbroker.Options{TLS: ca.server(t)})
	file := writeFile(t, t.TempDir(), "ca.pem", ca.pem())
	c := secured(t, Security{TLS: TLS{Enabled: true, CAFile: file}})
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := login(t, b.Addr(), c); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("without its authorities: %v", err)
	}
}

// A server that accepts and says nothing must not hold a client longer than the dial timeout.
func TestHandshakeIsUnderTheDialTimeout(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := sarama.NewConfig()
	c.Net.DialTimeout = 50 * time.Millisecond
	if err := (Security{TLS: TLS{Enabled: true}}).apply(c); err != nil {
		t.Fatal(err)
	}
	if _, err := dialerOf(c).Dial("tcp", l.Addr().String()); err == nil || !strings.Contains(err.Error(), "tls handshake") {
		t.Errorf("silent server: %v", err)
	}
}
