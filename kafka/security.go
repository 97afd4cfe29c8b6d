package kafka

import (
	"fmt"

	"github.com/IBM/sarama"
)

// Security says how connections are encrypted and how this process logs in. The zero value is a plain connection
// without a login.
type Security struct {
	TLS  TLS
	SASL SASL
}

// SASL is how this process logs in to the brokers.
type SASL struct {
	Mechanism string // PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER; empty: no login
	Username  string // of PLAIN and SCRAM
	Password  Secret // of PLAIN and SCRAM
	OAuth     OAuth  // of OAUTHBEARER
}

// Secret holds a password. It has its text behind a pointer, because fmt reads the unexported fields of a struct around
// it without calling any of its methods: what is printed then is an address.
type Secret struct{ text *string }

// NewSecret wraps the text.
func NewSecret(text string) Secret { return Secret{&text} }

// reveal returns the text, for the places that send it.
func (s Secret) reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Format prints *** for every verb, and nothing for an empty secret.
func (s Secret) Format(state fmt.State, _ rune) {
	if s.reveal() != "" {
		fmt.Fprint(state, "***")
	}
}

// MarshalText keeps the text out of JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(fmt.Sprint(s)), nil }

// apply sets up c, and reads every file once, so that a mistake shows at the start and not at the first reconnect. It
// uses c's dial timeout and keep-alive, so those are set before.
func (s Security) apply(c *sarama.Config) error {
	if s.TLS.Enabled {
		if _, err := s.TLS.config("localhost"); err != nil {
			return fmt.Errorf("kafka tls: %w", err)
		}
		dialerOf(c).tls = s.TLS
	}
	if s.SASL.Mechanism == "" {
		return nil
	}
	if err := s.SASL.apply(c); err != nil {
		return fmt.Errorf("kafka sasl: %w", err)
	}
	return nil
}

func (s SASL) apply(c *sarama.Config) error {
	mechanism := sarama.SASLMechanism(s.Mechanism)
	switch mechanism {
	case sarama.SASLTypePlaintext, sarama.SASLTypeSCRAMSHA256, sarama.SASLTypeSCRAMSHA512:
		if s.Username == "" || s.Password.reveal() == "" {
			return fmt.Errorf("%s needs a username and a password", s.Mechanism)
		}
		c.Net.SASL.User, c.Net.SASL.Password = s.Username, s.Password.reveal()
		if mechanism != sarama.SASLTypePlaintext {
			c.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{mechanism: mechanism} }
		}
	case sarama.SASLTypeOAuth:
		source, err := newTokenSource(s.OAuth)
		if err != nil {
			return err
		}
		c.Net.SASL.TokenProvider = source
	default:
		return fmt.Errorf("unknown mechanism %q; choose PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER", s.Mechanism)
	}
	c.Net.SASL.Enable = true
	c.Net.SASL.Mechanism = mechanism
	return nil
}
