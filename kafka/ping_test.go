package kafka

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"millrace/devbroker"
)

// pinged returns the steps as "name ok" or "name FAIL", and the whole report for failures.
func pinged(t *testing.T, c Config, topics ...PingTopic) (steps []string, report string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c.Group, c.ClientID, c.TransactionTimeout = "job", "test", 10*time.Second
	err := Ping(ctx, c, topics, func(s PingStep) {
		verdict := "ok"
		if s.Err != nil {
			verdict = "FAIL"
		}
		steps = append(steps, s.Name+" "+verdict)
		report += fmt.Sprintf("%s %s: %s %v\n", s.Name, s.Target, s.Detail, s.Err)
	})
	if failed := strings.Contains(strings.Join(steps, " "), "FAIL"); failed != (err != nil) {
		t.Errorf("the error is %v, the report:\n%s", err, report)
	}
	if strings.Contains(report, canary) {
		t.Errorf("the secret is in the report:\n%s", report)
	}
	return steps, report
}

func wantSteps(t *testing.T, got []string, report, want string) {
	t.Helper()
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("steps %s\nwant  %s\n%s", text, want, report)
	}
}

func TestPingNamesTheStepThatFails(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	dir := t.TempDir()
	right := writeFile(t, dir, "ca.pem", ca.pem())
	wrong := writeFile(t, dir, "other.pem", other.pem())
	b := startBroker(t, devbroker.Options{TLS: ca.server(t), Topics: map[string]int32{"in": 3},
		Users: []devbroker.User{{Mechanism: "PLAIN", Name: "ann", Password: canary}}})
	tls := func(file string) TLS { return TLS{Enabled: true, CAFile: file} }
	ann := SASL{Mechanism: "PLAIN", Username: "ann", Password: NewSecret(canary)}
	eve := SASL{Mechanism: "PLAIN", Username: "eve", Password: NewSecret(canary)}
	for name, c := range map[string]struct {
		security Security
		topic    string
		want     string
		says     string
	}{
		"all is well":                   {Security{tls(right), ann}, "in", "dns ok, tcp ok, tls ok, sasl ok, metadata ok, topic ok, group ok, transaction ok", "in: 3 partitions, may read"},
		"no TLS":                        {Security{}, "in", "dns ok, tcp ok, kafka FAIL", "does it want kafka.tls"},
		"another authority":             {Security{tls(wrong), ann}, "in", "dns ok, tcp ok, tls FAIL", "certificate signed by unknown authority"},
		"no login":                      {Security{TLS: tls(right)}, "in", "dns ok, tcp ok, tls ok, kafka FAIL", "does it want kafka.sasl"},
		"a wrong login":                 {Security{tls(right), eve}, "in", "dns ok, tcp ok, tls ok, sasl FAIL", "SASL"},
		"a missing topic":               {Security{tls(right), ann}, "out", "dns ok, tcp ok, tls ok, sasl ok, metadata ok, topic FAIL, group ok, transaction ok", "does not exist"},
		"a file that is not":            {Security{TLS: tls("none.pem")}, "in", "settings FAIL", "none.pem"},
		"a mechanism that nobody knows": {Security{SASL: SASL{Mechanism: "X"}}, "in", "settings FAIL", "choose PLAIN"},
	} {
		t.Run(name, func(t *testing.T) {
			steps, report := pinged(t, Config{Brokers: []string{b.Addr()}, Security: c.security, ExactlyOnce: true}, PingTopic{Name: c.topic})
			wantSteps(t, steps, report, c.want)
			if !strings.Contains(report, c.says) {
				t.Errorf("the report does not say %q:\n%s", c.says, report)
			}
		})
	}
}

func TestPingGoesOnWithTheBrokersThatAnswer(t *testing.T) {
	b := startBroker(t, devbroker.Options{Topics: map[string]int32{"out": 2}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	steps, report := pinged(t, Config{Brokers: []string{closed, "no-port", b.Addr()}}, PingTopic{Name: "out", Write: true})
	// Without exactly-once there is no transaction to try.
	wantSteps(t, steps, report, "dns ok, tcp FAIL, dns FAIL, dns ok, tcp ok, kafka ok, metadata ok, topic ok, group ok")
	if !strings.Contains(report, "out: 2 partitions, may write") {
		t.Errorf("the report does not say that the topic may be written:\n%s", report)
	}
}
