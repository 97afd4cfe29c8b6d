package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// guarded is a real Kafka of one test: it lets nobody in without a password, and asks an authorizer about everything.
type guarded struct {
	addr  string
	login []kgo.Opt // of the super user
	admin *kadm.Client
}

// aclUsers is how many users it knows besides the super user: user0, user1, …
const aclUsers = 40

// newGuarded starts it, with scripts/kafka.sh. It ends with the test, and with the test's process however that ends: the
// script that stops it waits at the other end of a pipe.
func newGuarded(t *testing.T) *guarded {
	t.Helper()
	if !realKafka() {
		t.Skipf("%s is not set: permissions are a matter of a real Kafka", brokersVariable)
	}
	dir := t.TempDir()
	properties := filepath.Join(dir, "acl.properties")
	if err := os.WriteFile(properties, []byte(guardedProperties()), 0o600); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../scripts/kafka.sh")
	if err != nil {
		t.Fatal(err)
	}
	stop := exec.Command("sh", "-c", `cat >/dev/null; "$1" stop "$2"`, "sh", script, dir)
	alive, err := stop.StdinPipe()
	if err == nil {
		err = stop.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = alive.Close() // nothing was written
		if err := stop.Wait(); err != nil {
			t.Errorf("stop the broker: %v", err)
		}
	})
	start := exec.Command(script, "start", dir, "0")
	start.Env = append(os.Environ(), "MILLRACE_KAFKA=", "MILLRACE_KAFKA_HEAP=512m", "MILLRACE_KAFKA_PROPERTIES="+properties)
	var said bytes.Buffer
	start.Stderr = &said
	out, err := start.Output()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == 3:
		t.Skipf("this machine cannot start a broker of its own: %s", said.String())
	case err != nil:
		t.Fatalf("%v: %s", err, said.String())
	}
	g := &guarded{addr: strings.TrimSpace(string(out)), login: []kgo.Opt{kgo.SASL(plain.Auth{User: "admin", Pass: canary}.AsMechanism())}}
	client, err := kgo.NewClient(append(g.login, kgo.SeedBrokers(g.addr))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	g.admin = kadm.NewClient(client)
	return g
}

// guardedProperties is what is added to the broker's own: its listener asks for a password, and it has an authorizer. The
// controller's listener stays open, so a stranger is super there.
func guardedProperties() string {
	users := `user_admin="` + canary + `"`
	for i := range aclUsers {
		users += ` user_` + userName(i) + `="` + canary + `"`
	}
	authorizer := "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
	if regexp.MustCompile(`^(2\.|3\.[0-2]\.)`).MatchString(os.Getenv("MILLRACE_KAFKA_VERSION")) { // with ZooKeeper, see kafka.sh
		authorizer = "kafka.security.authorizer.AclAuthorizer"
	}
	return `listener.security.protocol.map=PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="` + canary + `" ` + users + `;
authorizer.class.name=` + authorizer + `
super.users=User:admin;User:ANONYMOUS
`
}

// site is a cluster's view of the super user.
func (g *guarded) site(t *testing.T) *site {
	return (&site{t: t, addr: g.addr, login: g.login}).connect(4 * time.Minute)
}
