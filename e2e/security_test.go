package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"millrace/devbroker"
)

const canary = "canary-5up3r-s3cr3t" // a password that must be seen nowhere

// certificate makes a certificate for 127.0.0.1 that vouches for itself, and the PEM that trusts it.
func certificate(t *testing.T) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "e2e"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// fortress is a broker that lets nobody in without TLS and a password, and a client of the test's own that has both.
type fortress struct {
	*run
	login  []kgo.Opt
	client *kgo.Client // reads both outputs from their beginnings
	found  output
}

const secured = `  tls: { enabled: true, ca_file: "CA" }
  sasl: { mechanism: SCRAM-SHA-512, username: millrace, password: "${env:E2E_PASSWORD}" }
`

func newFortress(t *testing.T) *fortress {
	t.Helper()
	pair, trusted := certificate(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, trusted, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := devbroker.Start(devbroker.Options{TLS: &tls.Config{Certificates: []tls.Certificate{pair}},
		Users: []devbroker.User{{Mechanism: "SCRAM-SHA-512", Name: "millrace", Password: canary}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	s := (&site{t: t, broker: b, addr: b.Addr(), inside: true}).connect(2 * time.Minute)
	f := &fortress{run: newRun(s, runOptions{job: finalJob, seed: seed(), partitions: 2, replicas: 1, settings: settings{kafka: strings.ReplaceAll(secured, "CA", ca)}})}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted)
	f.login = []kgo.Opt{kgo.SeedBrokers(b.Addr()), kgo.DialTLSConfig(&tls.Config{RootCAs: roots}), kgo.SASL(scram.Auth{User: "millrace", Pass: canary}.AsSha512Mechanism()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ConsumeTopics(f.out, f.late), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted())}
	if f.client, err = kgo.NewClient(f.login...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.client.Close)
	return f
}

func (f *fortress) write(clicks []click) {
	f.t.Helper()
	for _, c := range clicks {
		r := c.record()
		if err := f.client.ProduceSync(f.site.ctx, &kgo.Record{Topic: f.in, Partition: c.partition, Key: r.Key, Value: r.Value, Timestamp: time.UnixMilli(r.Timestamp)}).FirstErr(); err != nil {
			f.t.Fatal(err)
		}
	}
}

// verdict reads what has come meanwhile and judges all of it.
func (f *fortress) verdict() verdict {
	ctx, cancel := context.WithTimeout(f.site.ctx, 200*time.Millisecond)
	defer cancel()
	f.client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
		to := &f.found.out
		if r.Topic == f.late {
			to = &f.found.late
		}
		*to = append(*to, devbroker.Record{Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value})
	})
	return f.job.verify(f.partitions, f.input.all, f.found)
}

// TestSecuredBrokersAndNoSecretIsSeen runs a job over TLS with SCRAM to the exact result, once before with a wrong
// password, and looks for the passwords in everything that the process says.
func TestSecuredBrokersAndNoSecretIsSeen(t *testing.T) {
	if realKafka() {
		t.Skip("the real Kafka of the tests has no users")
	}
	t.Parallel()
	replay(t)
	f := newFortress(t)
	c := f.replicas[0]
	c.extra = []string{"--log-level", "debug"}
	f.write(f.input.take(60))
	f.write(f.input.finish())

	c.env = []string{"E2E_PASSWORD=wrong-" + canary}
	c.start(fault{})
	poll(t, patience, "the login has failed", func() bool { return len(c.log.lines("kafka unreachable")) > 0 })
	if status, _ := c.get("/readyz"); status == 200 {
		t.Error("ready with a wrong password")
	}
	c.silent()
	if code := c.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	c.silent()

	c.env = []string{"E2E_PASSWORD=" + canary}
	c.start(fault{})
	poll(t, patience, "the result is exact", func() bool { return f.verdict().exact() })
	c.silent()
	if code := c.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	c.silent()
	if v := f.verdict(); !v.exact() {
		t.Errorf("after the end: %s", v)
	}
}

// silent checks that no password is in the log or in any answer.
func (r *replica) silent() {
	r.t.Helper()
	if strings.Contains(r.log.String(), canary) {
		r.t.Error("the password is in the log")
	}
	if !r.running() {
		return
	}
	for _, path := range []string{"/debug/config", "/v1/status", "/v1/topology", "/v1/topology?format=json", "/v1/restore", "/metrics", "/readyz?verbose", "/livez?verbose", "/"} {
		if _, body := r.get(path); strings.Contains(body, canary) {
			r.t.Errorf("the password is in %s", path)
		}
	}
	if status, body := r.get("/debug/config"); status != 200 || !strings.Contains(body, "SCRAM-SHA-512") {
		r.t.Errorf("/debug/config does not show the login at all: %d\n%s", status, body)
	}
}
