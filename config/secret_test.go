package config

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// canary is what must never be printed. It holds nothing that a printer would have to escape.
const canary = "canaryxyzzy7"

func mustNotHold(t *testing.T, what, text string) {
	t.Helper()
	if strings.Contains(text, canary) || strings.Contains(text, fmt.Sprintf("%x", canary)) || strings.Contains(text, fmt.Sprintf("%X", canary)) {
		t.Errorf("%s prints the secret: %s", what, text)
	}
}

func TestNoVerbPrintsASecret(t *testing.T) {
	s := Settings{Kafka: Kafka{SASL: SASL{Password: canary, OAuth: OAuth{ClientSecret: canary}}}}
	// %p is left out: fmt asks no method of a value before it, and vet refuses it for what is no pointer.
	for _, verb := range "vsqxXdtbcoUTeEfFgG" {
		for _, flags := range []string{"", "+", "#", "-20", ".3", " ", "0"} {
			format := "%" + flags + string(verb)
			mustNotHold(t, format, fmt.Sprintf(format, s.Kafka.SASL.Password))
			mustNotHold(t, format, fmt.Sprintf(format, s))
			mustNotHold(t, format, fmt.Sprintf(format, &s))
		}
	}
	mustNotHold(t, "Errorf", fmt.Errorf("login: %w, %v", os.ErrPermission, s.Kafka.SASL).Error())
	for name, marshal := range map[string]func(any) ([]byte, error){"JSON": json.Marshal, "YAML": yaml.Marshal, "XML": xml.Marshal} {
		text, err := marshal(s.Kafka.SASL)
		if err != nil {
			t.Fatal(err)
		}
		mustNotHold(t, name, string(text))
		if !strings.Contains(string(text), hidden) {
			t.Errorf("%s shows nothing in its place: %s", name, text)
		}
	}
	if got := s.Kafka.SASL.Password.Reveal(); got != canary {
		t.Errorf("Reveal returns %q", got)
	}
	if got := fmt.Sprintf("%v", Secret("")); got != "" {
		t.Errorf("an empty secret prints %q", got)
	}
}

// TestNoReportPrintsASecret writes a secret in many ways, well and badly, and looks for it in everything that is printed.
func TestNoReportPrintsASecret(t *testing.T) {
	secretFile := filepath.Join(t.TempDir(), "secret")
	write(t, secretFile, canary+"\n")
	written := []string{
		"sasl: { mechanism: PLAIN, username: u, password: " + canary + " }",
		"sasl: { mechanism: PLAIN, username: u, pasword: " + canary + " }",
		"sasl: { mechanism: PLAIN, username: u, password: [" + canary + "] }",
		"sasl: { mechanism: PLAIN, username: u, password: { x: " + canary + " } }",
		"sasl: { mechanism: PLAIN, mechanism: x, password: " + canary + " }",
		"sasl: " + canary,
		"sals: { password: " + canary + " }",
		"sasl:\n    mechanism: PLAIN\n    password:\n      " + canary + "\n    bad: 1",
		"sasl:\n    mechanism: PLAIN\n    password: |\n      x\n      " + canary + "\n    bad: 1",
		"sasl:\n    password: &p " + canary + "\n    client_id: *p",
		"sasl: { mechanism: PLAIN, username: u, password: *anchor }",
		"password: " + canary,
		"sasl: { mechanism: PLAIN, username: u, password: \"" + canary,
		"sasl: { mechanism: PLAIN, username: u, password: \"${env:SECRET}\" }",
		"sasl: { mechanism: PLAIN, username: u, password: \"${file:" + secretFile + "}\" }",
		"sasl: { mechanism: PLAIN, username: u, password_file: " + secretFile + " }",
		"sasl: { mechanism: PLAIN, username: u, password: \"${env:SECRET:-" + canary + "\" }",
		"sasl: { mechanism: OAUTHBEARER, oauth: { client_secret: " + canary + ", token_url: x } }",
		"session_timeout: \"${env:SECRET}\"",
		"bootstrap_servers: [\"${env:SECRET}\"]",
		"producer: { compression: \"${env:SECRET}\" }",
		"tls: { enabled: \"${env:SECRET}\" }",
	}
	for _, text := range written {
		file := strings.Replace(minimal, "kafka: { bootstrap_servers: [\"localhost:9092\"] }", "kafka:\n  client_id: x\n  "+text+"\nhttp: { listen: no }", 1)
		if strings.Contains(text, "*anchor") {
			file = "x-p: &anchor " + canary + "\n" + file
		}
		opts := LoadOptions{Environ: environ(map[string]string{"SECRET": canary, "MILLRACE_KAFKA_SASL_OAUTH_CLIENT_SECRET": canary})}
		c, list := load(t, opts, "config.yaml", file)
		if len(list) == 0 {
			t.Errorf("no findings about %s", text)
		}
		for _, format := range []Format{Text, JSON, GitHub} {
			mustNotHold(t, fmt.Sprintf("%s report on %q", format, text), render(t, list, format))
		}
		if c == nil {
			continue
		}
		for _, opts := range []ShowOptions{{}, {Effective: true, Origin: true}, {Effective: true, JSON: true}} {
			var out strings.Builder
			if err := c.Show(&out, opts); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text, "bootstrap_servers") && !strings.Contains(text, "compression") {
				mustNotHold(t, "show of "+text, out.String())
			}
		}
	}
}

func TestASecretFileIsReadAndItsModeChecked(t *testing.T) {
	for mode, want := range map[os.FileMode]int{0o600: 0, 0o640: 0, 0o644: 1} {
		name := filepath.Join(t.TempDir(), "secret")
		write(t, name, canary+"\r\n")
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		sets := []string{"kafka.sasl.mechanism=PLAIN", "kafka.sasl.username=u", "kafka.sasl.password_file=" + name}
		c, list := load(t, LoadOptions{Sets: sets}, "config.yaml", minimal)
		if len(list) != want || (want == 1 && list[0].Code != warnSecretMode) {
			t.Errorf("mode %o: findings %+v", mode, list)
		}
		if got := c.Settings.Kafka.SASL.Password.Reveal(); got != canary {
			t.Errorf("password %q", got)
		}
	}
}

func TestPlaintextIsWarnedOfBeyondThisMachineOnly(t *testing.T) {
	sets := []string{"kafka.sasl.mechanism=PLAIN", "kafka.sasl.username=u", "kafka.sasl.password=p"}
	for server, want := range map[string]bool{"localhost:1": false, "127.0.0.1:1": false, "[::1]:1": false, "broker:1": true, "10.0.0.1:1": true, "localhost:1,broker:1": true} {
		_, list := load(t, LoadOptions{Sets: append(sets, "kafka.bootstrap_servers="+server)}, "config.yaml", minimal)
		if got := len(list) == 1 && list[0].Code == warnPlaintext; got != want {
			t.Errorf("%s: %+v", server, list)
		}
		_, list = load(t, LoadOptions{Sets: append(sets, "kafka.bootstrap_servers="+server, "kafka.tls.enabled=true")}, "config.yaml", minimal)
		if len(list) != 0 {
			t.Errorf("%s with TLS: %+v", server, list)
		}
	}
}

func TestEndpointsReachOtherMachinesOnlyWhenToldTo(t *testing.T) {
	for listen, local := range map[string]bool{"127.0.0.1:0": true, "localhost:80": true, "[::1]:80": true, "": true, ":80": false, "0.0.0.0:80": false, "[::]:80": false, "host:80": false} {
		_, list := load(t, LoadOptions{Sets: []string{"http.listen=" + listen}}, "config.yaml", minimal)
		if HasErrors(list) == local {
			t.Errorf("%q: findings %+v", listen, list)
		}
		mustLoad(t, LoadOptions{Sets: []string{"http.listen=" + listen, "http.allow_remote=true"}}, "config.yaml", minimal)
	}
}
