package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"millrace/topology"
)

const minimal = `
version: 1
application_id: ad-clicks
kafka: { bootstrap_servers: ["localhost:9092"] }
state: { dir: ./state }
topology:
  sources:
    clicks: { topic: ad.clicks }
`

// load reads the files, given as name and text in turn, in a folder of their own.
func load(t *testing.T, opts LoadOptions, files ...string) (*Config, []topology.Finding) {
	t.Helper()
	t.Chdir(t.TempDir())
	for i := 0; i < len(files); i += 2 {
		write(t, files[i], files[i+1])
		opts.Files = append(opts.Files, files[i])
	}
	if opts.Environ == nil {
		opts.Environ = nothingSet
	}
	return Load(opts)
}

func mustLoad(t *testing.T, opts LoadOptions, files ...string) *Config {
	t.Helper()
	c, list := load(t, opts, files...)
	if HasErrors(list) {
		t.Fatalf("unexpected findings:\n%s", render(t, list, Text))
	}
	return c
}

func TestEveryLayerWinsOverTheOnesBelow(t *testing.T) {
	withFile := minimal + "shutdown_timeout: 20s\n"
	variable := map[string]string{"MILLRACE_SHUTDOWN_TIMEOUT": "30s"}
	cases := []struct {
		name, file string
		env        map[string]string
		sets       []string
		want       time.Duration
		origin     string
	}{
		{"default", minimal, nil, nil, 25 * time.Second, "default"},
		{"file", withFile, nil, nil, 20 * time.Second, "config.yaml:9:19"},
		{"environment over file", withFile, variable, nil, 30 * time.Second, "MILLRACE_SHUTDOWN_TIMEOUT"},
		{"environment over default", minimal, variable, nil, 30 * time.Second, "MILLRACE_SHUTDOWN_TIMEOUT"},
		{"an empty variable is none", withFile, map[string]string{"MILLRACE_SHUTDOWN_TIMEOUT": ""}, nil, 20 * time.Second, "config.yaml:9:19"},
		{"flag over all", withFile, variable, []string{"shutdown_timeout=40s"}, 40 * time.Second, "--set shutdown_timeout"},
		{"later flag over earlier", minimal, nil, []string{"shutdown_timeout=40s", "shutdown_timeout=50s"}, 50 * time.Second, "--set shutdown_timeout"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := mustLoad(t, LoadOptions{Sets: c.sets, Environ: environ(c.env)}, "config.yaml", c.file)
			if got.Settings.ShutdownTimeout != c.want {
				t.Errorf("value %s, want %s", got.Settings.ShutdownTimeout, c.want)
			}
			if origin := got.Origin("shutdown_timeout").String(); origin != c.origin {
				t.Errorf("origin %q, want %q", origin, c.origin)
			}
		})
	}
}

// TestEveryOptionReachesItsField sets each option by flag and by environment to a value of its own.
func TestEveryOptionReachesItsField(t *testing.T) {
	samples := map[string]string{
		"version": "1", "kafka.session_timeout": "44s", "kafka.bootstrap_servers": "a:1,b:2", "kafka.sasl.oauth.scopes": "read,write",
		"kafka.consumer.fetch_max_bytes": "2MiB", "kafka.producer.max_batch_bytes": "2MiB", "processing.max_epoch_bytes": "2MiB",
		"state.memory_budget": "2GiB", "state.min_free_bytes": "2MiB", "state.standby_replicas": "0", "state.changelog.replication_factor": "3",
	}
	for _, o := range options() {
		text, ok := samples[o.key]
		switch {
		case ok:
		case len(o.words) > 0:
			text = o.words[len(o.words)-1]
		case o.typ.Kind().String() == "bool":
			text = "true"
		case o.typ.Kind().String() == "int64":
			text = "1s"
		default:
			text = "text"
		}
		for name, opts := range map[string]LoadOptions{
			"flag":        {Sets: []string{o.key + "=" + text}},
			"environment": {Environ: environ(map[string]string{o.env: text})},
		} {
			c, _ := load(t, opts, "config.yaml", minimal)
			if got := format(o.value(&c.Settings)); got != text && (!o.secret() || o.value(&c.Settings).String() != text) {
				t.Errorf("%s by %s: %q, want %q", o.key, name, got, text)
			}
		}
	}
}

func TestFilesAreLaidOverEachOther(t *testing.T) {
	overlay := `
kafka: { client_id: over, bootstrap_servers: ["b:1", "c:1"] }
topology:
  sources:
    clicks: { format: json }
    views: { topic: ad.views }
`
	c := mustLoad(t, LoadOptions{}, "base.yaml", minimal, "over.yaml", overlay)
	if diff := cmp.Diff([]string{"b:1", "c:1"}, c.Settings.Kafka.BootstrapServers); diff != "" {
		t.Errorf("a list is replaced: %s", diff)
	}
	s := c.Spec.Sources
	if len(s) != 2 || s[0].Topic.Value != "ad.clicks" || s[0].Format.Value != "json" || s[1].Name.Value != "views" {
		t.Fatalf("sources %+v", s)
	}
	if s[0].Topic.Pos.File != "base.yaml" || s[0].Format.Pos.File != "over.yaml" {
		t.Errorf("places %v and %v, want each in its own file", s[0].Topic.Pos, s[0].Format.Pos)
	}
}

func TestAnOverriddenReferenceNeedNotResolve(t *testing.T) {
	file := strings.Replace(minimal, "./state", `"${env:NO_SUCH_VARIABLE}"`, 1)
	if _, list := load(t, LoadOptions{}, "config.yaml", file); !HasErrors(list) {
		t.Error("the reference itself leads nowhere and must be reported")
	}
	c := mustLoad(t, LoadOptions{Environ: environ(map[string]string{"MILLRACE_STATE_DIR": "/data"})}, "config.yaml", file)
	if c.Settings.State.Dir != "/data" {
		t.Errorf("state.dir %q", c.Settings.State.Dir)
	}
}

func TestDefaultsGiveWayToWrittenLimits(t *testing.T) {
	c := mustLoad(t, LoadOptions{Sets: []string{"kafka.session_timeout=3s", "state.memory_budget=32MiB"}}, "config.yaml", minimal)
	k := c.Settings.Kafka
	got := []time.Duration{k.HeartbeatInterval, k.Consumer.FetchMaxWait, k.Producer.TransactionTimeout}
	if diff := cmp.Diff([]time.Duration{time.Second, 300 * time.Millisecond, 3 * time.Second}, got); diff != "" {
		t.Error(diff)
	}
	if c.Settings.Processing.MaxEpochBytes != 8<<20 {
		t.Errorf("max_epoch_bytes %s, want a quarter of the budget", c.Settings.Processing.MaxEpochBytes)
	}
}

func TestExactlyOnceHasTwoNames(t *testing.T) {
	c := mustLoad(t, LoadOptions{Sets: []string{"processing.guarantee=exactly_once_v2"}}, "config.yaml", minimal)
	if c.Settings.Processing.Guarantee != "exactly_once" {
		t.Errorf("guarantee %q", c.Settings.Processing.Guarantee)
	}
}

// TestTheExampleSaysTheDefaults keeps config.yaml, which people read as the documentation, in step with Default.
func TestTheExampleSaysTheDefaults(t *testing.T) {
	c, list := Load(LoadOptions{Files: []string{filepath.Join("..", DefaultFile)}, Environ: nothingSet})
	if len(list) > 0 {
		t.Fatal(render(t, list, Text))
	}
	want := Default()
	want.ApplicationID, want.State.Dir = "ad-clicks", "./.millrace-state"
	want.Kafka.BootstrapServers = []string{"localhost:9092"}
	want.Errors.Deserialization, want.Errors.DeadLetterTopic = "dead_letter", "ad.clicks.dead_letter"
	if diff := cmp.Diff(want, c.Settings); diff != "" {
		t.Errorf("config.yaml (-want +got):\n%s", diff)
	}
	for _, o := range options() {
		if c.Origin(o.key).Kind != FromFile && !strings.HasPrefix(o.key, "kafka.tls.") && !strings.HasPrefix(o.key, "kafka.sasl.") && !strings.HasPrefix(o.key, "http.admin_token") {
			t.Errorf("config.yaml does not show %s", o.key)
		}
	}
	if len(c.Tests) != 3 || len(c.Spec.Steps) != 1 {
		t.Errorf("%d tests, %d steps", len(c.Tests), len(c.Spec.Steps))
	}
}

func TestAFileBeyondTheBoundIsRefused(t *testing.T) {
	_, list := load(t, LoadOptions{}, "config.yaml", minimal+strings.Repeat("# padding\n", 1<<17))
	if len(list) != 1 || list[0].Code != codeTooBig {
		t.Errorf("findings %+v", list)
	}
}

func TestOneUnreadableLayerStopsAll(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("folder.yaml", 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, "config.yaml", minimal)
	for _, name := range []string{"none.yaml", "folder.yaml"} {
		c, list := Load(LoadOptions{Files: []string{"config.yaml", name}, Environ: nothingSet})
		if c != nil || len(list) != 1 || !Unreadable(list[0]) {
			t.Errorf("%s: config %v, findings %+v", name, c, list)
		}
	}
}

func TestEveryOptionIsDocumented(t *testing.T) {
	reference := Reference()
	if len(reference) != len(options()) {
		t.Fatalf("%d entries for %d options", len(reference), len(options()))
	}
	for _, o := range reference {
		if o.Doc == "" || !strings.HasSuffix(o.Doc, ".") {
			t.Errorf("%s is documented as %q, want sentences", o.Key, o.Doc)
		}
	}
	byKey := make(map[string]Option)
	for _, o := range reference {
		byKey[o.Key] = o
	}
	got := byKey["kafka.session_timeout"]
	if got.Env != "MILLRACE_KAFKA_SESSION_TIMEOUT" || got.Default != "45s" || !strings.Contains(got.Doc, "static member") {
		t.Errorf("kafka.session_timeout: %+v", got)
	}
}

func TestCodesAreListedOnce(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range Codes() {
		if seen[c.Code] || c.Meaning == "" {
			t.Errorf("code %s is listed twice or means nothing", c.Code)
		}
		seen[c.Code] = true
	}
}
