package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
)

// TLS encrypts the connections to the brokers, with version 1.2 or newer. The files are PEM. They are read again for each
// connection, so that certificates renewed on disk are used without a restart.
type TLS struct {
	Enabled            bool
	CAFile             string // who signs the brokers' certificates; empty: the system's authorities
	CertFile, KeyFile  string // our own certificate, for brokers that ask for one
	ServerName         string // to expect in the brokers' certificates; empty: the host that was dialled
	InsecureSkipVerify bool   // accepts any certificate
}

// config makes the settings for one connection.
func (t TLS) config(host string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, InsecureSkipVerify: t.InsecureSkipVerify}
	if t.ServerName != "" {
		c.ServerName = t.ServerName
	}
	if t.CAFile != "" {
		roots, err := readRoots(t.CAFile)
		if err != nil {
			return nil, err
		}
		c.RootCAs = roots
	}
	if t.CertFile != "" || t.KeyFile != "" {
		certificate, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read certificate %s with key %s: %w", t.CertFile, t.KeyFile, err)
		}
		// Not Certificates: that would send nothing to a broker whose list of authorities lacks ours, and the broker
		// would then complain of a missing certificate instead of a wrong one.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }
	}
	return c, nil
}

func readRoots(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read authorities: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read authorities: %s holds no PEM certificate", file)
	}
	return roots, nil
}

// handshake encrypts a connection to address. It closes the connection when it fails.
func (t TLS) handshake(ctx context.Context, conn net.Conn, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	var c *tls.Config
	if err == nil {
		c, err = t.config(host)
	}
	if err == nil {
		encrypted := tls.Client(conn, c)
		if err = encrypted.HandshakeContext(ctx); err == nil {
			return encrypted, nil
		}
	}
	_ = conn.Close() // Nothing was sent that anybody waits for.
	return nil, fmt.Errorf("tls handshake with %s: %w", address, err)
}
