package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// checkTLS refuses settings that would silently have no effect: whoever names a certificate believes in encryption.
func (l *settingsLoader) checkTLS() {
	t := l.settings.Kafka.TLS
	if !t.Enabled {
		for _, unused := range []struct{ key, value string }{
			{"ca_file", t.CAFile}, {"cert_file", t.CertFile}, {"key_file", t.KeyFile}, {"server_name", t.ServerName},
		} {
			if unused.value != "" {
				l.fail("kafka.tls."+unused.key, codeSecurity, "TLS is not switched on", "add kafka.tls.enabled: true")
			}
		}
	}
	if t.CertFile != "" && t.KeyFile == "" {
		l.fail("kafka.tls.cert_file", codeSecurity, "there is no kafka.tls.key_file for it", "")
	}
	if t.KeyFile != "" && t.CertFile == "" {
		l.fail("kafka.tls.key_file", codeSecurity, "there is no kafka.tls.cert_file for it", "")
	}
	if t.InsecureSkipVerify {
		l.warnAt("kafka.tls.insecure_skip_verify", warnSkipVerify, "anybody who answers is taken for a broker", "name the authority in kafka.tls.ca_file instead")
	}
}

func (l *settingsLoader) checkSASL() {
	s := l.settings.Kafka.SASL
	switch s.Mechanism {
	case "":
		for _, o := range l.options {
			if strings.HasPrefix(o.key, "kafka.sasl.") && o.key != "kafka.sasl.mechanism" && l.origins[o.key].Kind != FromDefault && !o.value(&l.settings).IsZero() {
				l.report(o, codeSecurity, "kafka.sasl.mechanism is not set, so nobody would log in", "add one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER")
				return
			}
		}
		return
	case "OAUTHBEARER":
		l.needs("kafka.sasl.oauth.token_url", s.OAuth.TokenURL, s.Mechanism)
		l.needs("kafka.sasl.oauth.client_id", s.OAuth.ClientID, s.Mechanism)
		l.needs("kafka.sasl.oauth.client_secret", s.OAuth.ClientSecret.Reveal(), s.Mechanism)
		l.checkTokenURL()
	default:
		l.needs("kafka.sasl.username", s.Username, s.Mechanism)
		l.needs("kafka.sasl.password", s.Password.Reveal(), s.Mechanism)
	}
	// SCRAM does not send the password itself; the other two do.
	sendsSecret := s.Mechanism == "PLAIN" || s.Mechanism == "OAUTHBEARER"
	remote := slices.IndexFunc(l.settings.Kafka.BootstrapServers, func(server string) bool {
		host, _, err := net.SplitHostPort(server)
		return err == nil && !loopback(host)
	})
	if sendsSecret && !l.settings.Kafka.TLS.Enabled && remote >= 0 {
		l.warnAt("kafka.sasl.mechanism", warnPlaintext, s.Mechanism+" without TLS sends the secret readably to brokers beyond this machine",
			"add kafka.tls.enabled: true, or use SCRAM-SHA-512")
	}
}

// needs reports a setting that the mechanism cannot do without, where the mechanism was chosen.
func (l *settingsLoader) needs(key, value, mechanism string) {
	if value == "" && !l.broken[key] {
		l.fail("kafka.sasl.mechanism", codeSecurity, fmt.Sprintf("%s needs %s", mechanism, key), "")
	}
}

func (l *settingsLoader) checkTokenURL() {
	text := l.settings.Kafka.SASL.OAuth.TokenURL
	if text == "" {
		return
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" {
		l.fail("kafka.sasl.oauth.token_url", codeAddress, "this is not a URL", "write it as in https://auth.example.com/oauth2/token")
		return
	}
	if parsed.Scheme != "https" && !loopback(parsed.Hostname()) {
		l.fail("kafka.sasl.oauth.token_url", codeSecurity, "the client's secret would cross the network unencrypted", "use https")
	}
}

// checkLiteralSecrets warns of secrets in files, which end up in version control.
func (l *settingsLoader) checkLiteralSecrets() {
	for _, o := range l.options {
		origin := l.origins[o.key]
		if o.secret() && origin.node != nil && origin.node.raw != "" && !strings.Contains(origin.node.raw, "${") {
			l.warnAt(o.key, warnLiteralSecret, "a secret is written into the file", "refer to it with ${env:NAME} or ${file:/path}")
		}
	}
}
