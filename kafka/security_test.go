package kafka

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/IBM/sarama"

	"millrace/devbroker"
)

// canary is the secret of every test here: no error and no dump may hold it.
const canary = "canary-7f3a9c"

// secured returns sarama settings that try each step once.
func secured(t *testing.T, s Security) *sarama.Config {
	t.Helper()
	c := sarama.NewConfig()
	c.Metadata.Retry.Max = 0
	if err := s.apply(c); err != nil {
		t.Fatal(err)
	}
	return c
}

// login connects once; its error must not hold the secret.
func login(t *testing.T, addr string, c *sarama.Config) error {
	t.Helper()
	client, err := sarama.NewClient([]string{addr}, c)
	if err != nil {
		if strings.Contains(err.Error(), canary) {
			t.Errorf("the secret is in the error: %v", err)
		}
		return err
	}
	defer client.Close()
	return client.RefreshMetadata()
}

func startBroker(t *testing.T, o devbroker.Options) *devbroker.Broker {
	t.Helper()
	b, err := devbroker.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func TestPasswordLogins(t *testing.T) {
	ca := newAuthority(t)
	caFile := writeFile(t, t.TempDir(), "ca.pem", ca.pem())
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			b := startBroker(t, devbroker.Options{
				TLS:   ca.server(t),
				Users: []devbroker.User{{Mechanism: mechanism, Name: "ann", Password: canary}},
			})
			s := Security{
				TLS:  TLS{Enabled: true, CAFile: caFile},
				SASL: SASL{Mechanism: mechanism, Username: "ann", Password: NewSecret(canary)},
			}
			if err := login(t, b.Addr(), secured(t, s)); err != nil {
				t.Errorf("right password: %v", err)
			}
			s.SASL.Password = NewSecret(canary + "-wrong")
			if err := login(t, b.Addr(), secured(t, s)); err == nil {
				t.Error("a wrong password was accepted")
			}
			s.SASL = SASL{}
			if err := login(t, b.Addr(), secured(t, s)); err == nil {
				t.Error("no login was accepted")
			}
		})
	}
}

// An impostor that lowers the iterations could try passwords against our answer much faster.
func TestScramRefusesAWeakChallenge(t *testing.T) {
	c := &scramClient{mechanism: sarama.SASLTypeSCRAMSHA256}
	if err := c.Begin("ann", canary, ""); err != nil {
		t.Fatal(err)
	}
	first, err := c.Step("")
	if err != nil {
		t.Fatal(err)
	}
	_, nonce, _ := strings.Cut(first, "r=")
	_, err = c.Step("r=" + nonce + "server,s=c2FsdHNhbHQ=,i=1000")
	if err == nil || !strings.HasPrefix(err.Error(), "SCRAM-SHA-256: ") || strings.Contains(err.Error(), canary) {
		t.Errorf("challenge with 1000 iterations: %v", err)
	}
}

func TestForbiddenCharactersOfAPasswordAreNotQuoted(t *testing.T) {
	c := &scramClient{mechanism: sarama.SASLTypeSCRAMSHA512}
	err := c.Begin("ann", canary+"\u0007", "")
	if err == nil || !strings.Contains(err.Error(), "characters that the mechanism forbids") || strings.ContainsAny(err.Error(), "\u0007") {
		t.Errorf("password with a control character: %v", err)
	}
}

func TestIncompleteSecurityIsRefused(t *testing.T) {
	secret := NewSecret(canary)
	for _, c := range []struct {
		sasl SASL
		want string
	}{
		{SASL{Mechanism: "GSSAPI"}, `unknown mechanism "GSSAPI"; choose`},
		{SASL{Mechanism: "plain", Username: "ann", Password: secret}, `unknown mechanism "plain"`},
		{SASL{Mechanism: "PLAIN", Password: secret}, "needs a username and a password"},
		{SASL{Mechanism: "SCRAM-SHA-512", Username: "ann"}, "needs a username and a password"},
		{SASL{Mechanism: "OAUTHBEARER"}, "token URL"},
	} {
		err := Security{SASL: c.sasl}.apply(sarama.NewConfig())
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "kafka sasl: ") {
			t.Errorf("%+v: %v; want an error with %q", c.sasl, err, c.want)
		}
	}
}

func TestNoSecurityMeansAPlainConnection(t *testing.T) {
	if err := login(t, startBroker(t, devbroker.Options{}).Addr(), secured(t, Security{})); err != nil {
		t.Error(err)
	}
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	s := Security{SASL: SASL{Mechanism: "PLAIN", Username: "ann", Password: NewSecret(canary),
		OAuth: OAuth{ClientID: "id", ClientSecret: NewSecret(canary)}}}
	// fmt calls no methods on what lies in an unexported field.
	inside := struct{ security Security }{s}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		for _, value := range []any{s, &s, inside, &inside, s.SASL.Password, &s.SASL.Password, []Secret{s.SASL.Password}} {
			text := fmt.Sprintf(verb, value)
			for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary)} {
				if strings.Contains(text, form) {
					t.Errorf("%s of %T: %s", verb, value, text)
				}
			}
		}
	}
	text, err := json.Marshal(s)
	if err != nil || strings.Contains(string(text), canary) || !strings.Contains(string(text), "***") {
		t.Errorf("JSON: %s %v", text, err)
	}
	if got := fmt.Sprint(s.SASL.Password, Secret{}, NewSecret("")); strings.TrimSpace(got) != "***" {
		t.Errorf("a secret and two empty ones print %q, want *** and nothing", got)
	}
}
