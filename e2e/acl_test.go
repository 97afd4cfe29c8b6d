package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func userName(i int) string { return "user" + strconv.Itoa(i) }

// permission is one line of millrace explain --acls, as its JSON has it.
type permission struct {
	Resource, Name, Pattern, Before string
	Operations                      []string
}

// login lets a job in as one of the broker's users.
const login = `  sasl: { mechanism: PLAIN, username: USER, password: "${env:E2E_PASSWORD}" }
`

var users atomic.Int64

// citizen is a run whose replicas log in as a user of their own.
type citizen struct {
	*run
	guarded *guarded
	user    string
}

func newCitizen(t *testing.T, g *guarded, o runOptions) *citizen {
	t.Helper()
	user := userName(int(users.Add(1) - 1))
	o.settings.kafka = strings.ReplaceAll(login, "USER", user)
	c := &citizen{run: newRun(g.site(t), o), guarded: g, user: "User:" + user}
	for _, r := range c.replicas {
		r.env = []string{"E2E_PASSWORD=" + canary}
	}
	return c
}

// explained asks the program what the job needs.
func (c *citizen) explained() []permission {
	c.t.Helper()
	cmd := exec.Command(os.Args[0], "explain", "-c", c.file, "--acls", "--format", "json", "--set", "state.dir="+c.replicas[0].dir)
	cmd.Env = append(os.Environ(), childMark+"=1", "E2E_PASSWORD="+canary)
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatal(err)
	}
	var answer struct{ ACLs []permission }
	if err := json.Unmarshal(out, &answer); err != nil || len(answer.ACLs) == 0 {
		c.t.Fatalf("%v: %s", err, out)
	}
	return answer.ACLs
}

// rule is a permission in the words of the admin client.
func (c *citizen) rule(p permission) *kadm.ACLBuilder {
	c.t.Helper()
	b := kadm.NewACLs().Allow(c.user).AllowHosts("*")
	switch p.Resource {
	case "topic":
		b.Topics(p.Name)
	case "group":
		b.Groups(p.Name)
	case "cluster":
		b.Clusters()
	case "transactional_id":
		b.TransactionalIDs(p.Name)
	default:
		c.t.Fatalf("resource %q", p.Resource)
	}
	pattern := kadm.ACLPatternLiteral
	if p.Pattern == "prefixed" {
		pattern = kadm.ACLPatternPrefixed
	}
	var operations []kadm.ACLOperation
	for _, name := range p.Operations {
		o, err := kmsg.ParseACLOperation(name)
		if err != nil {
			c.t.Fatal(err)
		}
		operations = append(operations, o)
	}
	return b.ResourcePatternType(pattern).Operations(operations...)
}

// grant gives the permissions to the run's user, and waits until the authorizer knows them.
func (c *citizen) grant(list ...permission) {
	c.t.Helper()
	for _, p := range list {
		if len(p.Operations) == 0 {
			continue
		}
		made, err := c.guarded.admin.CreateACLs(c.site.ctx, c.rule(p))
		if err != nil {
			c.t.Fatal(err)
		}
		for _, r := range made {
			if r.Err != nil {
				c.t.Fatal(r.Err)
			}
		}
		poll(c.t, patience, "the authorizer knows the permission", func() bool {
			found, err := c.guarded.admin.DescribeACLs(c.site.ctx, c.rule(p))
			n := 0
			for _, f := range found {
				n += len(f.Described)
			}
			return err == nil && n == len(p.Operations)
		})
	}
}

// revoke takes a permission away, and waits until the authorizer has forgotten it.
func (c *citizen) revoke(p permission) {
	c.t.Helper()
	if _, err := c.guarded.admin.DeleteACLs(c.site.ctx, c.rule(p)); err != nil {
		c.t.Fatal(err)
	}
	poll(c.t, patience, "the authorizer has forgotten the permission", func() bool {
		found, err := c.guarded.admin.DescribeACLs(c.site.ctx, c.rule(p))
		return err == nil && !slices.ContainsFunc(found, func(f kadm.DescribeACLsResult) bool { return len(f.Described) > 0 })
	})
}

// needed is what explain --acls lists, less what only older brokers than this one ask for.
func (c *citizen) needed() []permission {
	return slices.DeleteFunc(c.explained(), func(p permission) bool {
		return p.Before != "" && !regexp.MustCompile(`^2\.[0-7]\.`).MatchString(os.Getenv("MILLRACE_KAFKA_VERSION"))
	})
}

func aclOptions(j job, guarantee string) runOptions {
	return runOptions{job: j, seed: seed(), partitions: 2, replicas: 1, settings: settings{guarantee: guarantee}}
}

// TestExplainedPermissionsSuffice: a job that may do what explain --acls lists, and nothing else, gets to the exact result,
// through a restart that restores its state.
func TestExplainedPermissionsSuffice(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	for _, guarantee := range []string{"exactly_once", "at_least_once"} {
		for _, j := range []job{shuffledJob, changesJob, statelessJob} {
			t.Run(guarantee+"/"+j.name, func(t *testing.T) {
				t.Parallel()
				replay(t)
				c := newCitizen(t, g, aclOptions(j, guarantee))
				c.grant(c.needed()...)
				r := c.replicas[0]
				r.start(fault{})
				c.feed(20)
				if code := r.stop(); code != 0 {
					t.Fatalf("exit code %d", code)
				}
				r.loseDisk()
				r.start(fault{})
				c.feed(20)
				c.alive()
				c.finish()
				if strings.Contains(r.log.String(), "authorized") {
					t.Error("something was refused")
				}
			})
		}
	}
}

// lacking is a permission that is left out, and what comes of it.
type lacking struct {
	topic     string // of the permission: in, out, late, or "" for the internal ones
	resource  string
	operation string
	reaction  string // exit: with code 3; exit again: at the second start; stays: and does not work; works: and warns
}

// Describe is not among them: Kafka's own authorizers take it as given with each of the others, and other authorizers may
// not.
var lackings = []lacking{
	{"in", "topic", "Read", "stays"},
	{"out", "topic", "Write", "stays"},
	{"late", "topic", "Write", "stays"},
	{"", "topic", "Create", "exit"},
	{"", "topic", "Read", "stays"},
	{"", "topic", "Write", "stays"},
	{"", "topic", "Delete", "works"},
	{"", "topic", "DescribeConfigs", "exit again"},
	{"", "group", "Read", "exit"},
	{"", "transactional_id", "Write", "stays"},
}

func besidesDescribe(list []permission) (n int) {
	for _, p := range list {
		for _, o := range p.Operations {
			if o != "Describe" {
				n++
			}
		}
	}
	return n
}

// split takes the permission out of the list.
func (l lacking) split(t *testing.T, c *citizen, list []permission) (rest []permission, missing permission) {
	t.Helper()
	name := map[string]string{"in": c.in, "out": c.out, "late": c.late}[l.topic]
	for _, p := range list {
		of := p.Resource == l.resource && (l.resource != "topic" || p.Name == name || name == "" && p.Pattern == "prefixed")
		if of && slices.Contains(p.Operations, l.operation) {
			missing = p
			missing.Operations = []string{l.operation}
			p.Operations = slices.DeleteFunc(slices.Clone(p.Operations), func(o string) bool { return o == l.operation })
		}
		rest = append(rest, p)
	}
	if missing.Name == "" {
		t.Fatalf("explain --acls does not list %v", l)
	}
	return rest, missing
}

// says is what must be in the log: what to grant, and on what.
func (p permission) says() string {
	return "this login lacks the permission " + p.Operations[0] + " on " + strings.ReplaceAll(p.Resource, "_", " ") + " " + p.Name
}

// TestEachExplainedPermissionIsNeeded leaves out each permission that explain --acls lists. The log says which one is
// missing; once it is granted, the job gets to the exact result, without a restart if the replica has stayed.
func TestEachExplainedPermissionIsNeeded(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	for _, l := range lackings {
		t.Run(strings.Join([]string{l.resource, l.topic, l.operation}, "-"), func(t *testing.T) {
			t.Parallel()
			replay(t)
			c := newCitizen(t, g, aclOptions(shuffledJob, "exactly_once"))
			if n := besidesDescribe(c.needed()); n != len(lackings) {
				t.Errorf("explain --acls lists %d permissions besides Describe, and %d are known to be needed", n, len(lackings))
			}
			rest, missing := l.split(t, c, c.needed())
			c.grant(rest...)
			r := c.replicas[0]
			r.start(fault{})
			if l.reaction == "exit again" {
				c.feed(10)
				if code := r.stop(); code != 0 {
					t.Fatalf("exit code %d", code)
				}
				r.start(fault{})
			}
			c.produce(c.input.take(60))
			c.produce(c.input.finish())
			switch l.reaction {
			case "exit", "exit again":
				if code := r.wait(patience); code != 3 {
					t.Errorf("exit code %d, want 3", code)
				}
				if !strings.Contains(r.log.String(), missing.says()) {
					t.Errorf("it does not say %q", missing.says())
				}
				c.grant(missing)
				r.start(fault{})
			case "stays":
				c.idle(r, missing)
				c.grant(missing)
			case "works":
				poll(t, patience, "the log says: "+missing.says(), func() bool { return strings.Contains(r.log.String(), missing.says()) })
			}
			c.await()
			c.alive()
			c.stop()
			c.verify()
		})
	}
}

// idle waits until the log says what is missing, and checks that the replica stays, alive and not ready.
func (c *citizen) idle(r *replica, missing permission) {
	c.t.Helper()
	poll(c.t, patience, "the log says: "+missing.says(), func() bool { return strings.Contains(r.log.String(), missing.says()) })
	if !r.running() {
		c.t.Fatalf("replica %s has ended: %v", r.name, r.cmd.ProcessState)
	}
	poll(c.t, patience, "it is not ready", func() bool { status, _ := r.get("/readyz"); return status == 503 }) // it is for moments, between two attempts
	if status, body := r.get("/livez"); status != 200 {
		c.t.Errorf("/livez is %d, a restart would not help: %s", status, body)
	}
}

// TestPermissionTakenAtWork: a permission goes while the job works. It says which, commits nothing, and goes on to the
// exact result when it has the permission again.
func TestPermissionTakenAtWork(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	for _, l := range []lacking{{"", "topic", "Write", ""}, {"", "transactional_id", "Write", ""}, {"", "group", "Read", ""}, {"in", "topic", "Read", ""}} {
		t.Run(strings.Join([]string{l.resource, l.topic, l.operation}, "-"), func(t *testing.T) {
			t.Parallel()
			replay(t)
			c := newCitizen(t, g, aclOptions(changesJob, "exactly_once"))
			list := c.needed()
			c.grant(list...)
			r := c.replicas[0]
			r.start(fault{})
			c.feed(20)
			_, missing := l.split(t, c, list)
			c.revoke(missing)
			was, err := c.site.client.CommittedOffsets(c.site.ctx, c.application)
			if err != nil {
				t.Fatal(err)
			}
			c.produce(c.input.take(20))
			c.idle(r, missing)
			is, err := c.site.client.CommittedOffsets(c.site.ctx, c.application)
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(was, is) {
				t.Errorf("offsets were %v and are %v", was, is)
			}
			c.grant(missing)
			c.committed()
			c.alive()
			c.finish()
		})
	}
}
