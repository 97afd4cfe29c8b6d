package e2e

import (
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

// fortress keeps its data on disk, so that the test's own client can fill it and read it while its doors are open.
type fortress struct {
	t      *testing.T
	data   string
	port   int
	pair   tls.Certificate
	broker *devbroker.Broker
}

func (f *fortress) restart(locked bool) {
	f.t.Helper()
	if f.broker != nil {
		f.broker.Close()
	}
	o := devbroker.Options{DataDir: f.data, Port: f.port}
	if locked {
		o.TLS = &tls.Config{Certificates: []tls.Certificate{f.pair}}
		o.Users = []devbroker.User{{Mechanism: "SCRAM-SHA-512", Name: "millrace", Password: canary}}
	}
	var err error
	if f.broker, err = devbroker.Start(o); err != nil {
		f.t.Fatal(err)
	}
	f.port = f.broker.Ports()[0]
}

const secured = `  tls: { enabled: true, ca_file: "CA" }
  sasl: { mechanism: SCRAM-SHA-512, username: millrace, password: "${env:E2E_PASSWORD}" }
`

// TestSecuredBrokersAndNoSecretIsSeen runs a job over TLS with SCRAM to the exact result, once more with a wrong
// password, and looks for the passwords in everything that the process says.
func TestSecuredBrokersAndNoSecretIsSeen(t *testing.T) {
	if realKafka() {
		t.Skip("the real Kafka of the tests has no users")
	}
	t.Parallel()
	replay(t)
	pair, trusted := certificate(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, trusted, 0o600); err != nil {
		t.Fatal(err)
	}
	f := &fortress{t: t, data: t.TempDir(), pair: pair}
	f.restart(false)
	t.Cleanup(func() { f.broker.Close() })
	s := (&site{t: t, broker: f.broker, addr: f.broker.Addr()}).connect(2 * time.Minute)
	r := newRun(s, runOptions{job: finalJob, seed: seed(), partitions: 2, replicas: 1, settings: settings{kafka: strings.ReplaceAll(secured, "CA", ca)}})
	c := r.replicas[0]
	c.extra = []string{"--log-level", "debug"}
	r.produce(r.input.take(60))
	r.produce(r.input.finish())
	f.restart(true)

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
	poll(t, patience, "all input is committed", func() bool { return r.consumed() })
	c.silent()
	if code := c.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	c.silent()
	f.restart(false)
	r.await()
	r.verify()
}

// consumed asks the replica: the test's client cannot log in.
func (r *run) consumed() bool {
	for p := range r.partitions {
		if !strings.Contains(r.metrics(), `millrace_consumer_lag_records{application_id="`+r.application+`",partition="`+number(int(p))+`",topic="`+r.in+`"} 0`) {
			return false
		}
	}
	return strings.Contains(r.metrics(), `,topic="`+r.in+`"} `+number(len(r.input.all))+"\n")
}

func (r *run) metrics() string {
	_, body := r.replicas[0].get("/metrics")
	return body
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
	if status, body := r.get("/debug/config"); status == 200 && !strings.Contains(body, "SCRAM-SHA-512") {
		r.t.Errorf("/debug/config does not show the login at all:\n%s", body)
	}
}
