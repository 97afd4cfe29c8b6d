package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestHTTPAlongALife asks a replica everything that it answers, before it has joined, while it works, and while it stops.
func TestHTTPAlongALife(t *testing.T) {
	t.Parallel()
	replay(t)
	s := newSite(t)
	r := newRun(s, runOptions{job: finalJob, seed: seed(), partitions: 2, replicas: 1})
	c := r.replicas[0]

	// Without brokers: alive, neither started nor ready.
	c.extra = []string{"--set", "kafka.bootstrap_servers=127.0.0.1:1"}
	c.start(fault{})
	poll(t, patience, "it answers without brokers", func() bool { status, _ := c.get("/livez"); return status == http.StatusOK })
	for _, path := range []string{"/readyz", "/startupz"} {
		if status, body := c.get(path); status != http.StatusServiceUnavailable {
			t.Errorf("%s without brokers: %d %s", path, status, body)
		}
	}
	if code := c.stop(); code != 0 {
		t.Errorf("a stop without brokers has exit code %d", code)
	}

	c.extra = nil
	c.start(fault{})
	r.feed(40)
	for _, path := range []string{"/livez", "/readyz", "/startupz"} {
		poll(t, patience, path, func() bool { status, _ := c.get(path); return status == http.StatusOK })
	}
	r.metricsAddUp(c)
	r.documents(c)
	r.finish()
}

// metricsAddUp holds the counters against what went in.
func (r *run) metricsAddUp(c *replica) {
	r.t.Helper()
	late := 0
	for range lateBehindOwn(r.input.all) {
		late++
	}
	want := map[string]int{
		`millrace_records_consumed_total{application_id="` + r.application + `",source="clicks",topic="` + r.in + `"}`: len(r.input.all),
		`millrace_step_records_total{application_id="` + r.application + `",port="late",step="user_minutes"}`:          late,
		`millrace_records_produced_total{application_id="` + r.application + `",sink="late",topic="` + r.late + `"}`:   late,
		`millrace_tasks{application_id="` + r.application + `",role="active",subtopology="0"}`:                         int(r.partitions),
		`millrace_consumer_lag_records{application_id="` + r.application + `",partition="1",topic="` + r.in + `"}`:     0,
		`millrace_instance_state{application_id="` + r.application + `",state="running"}`:                              1,
		`millrace_commits_total{application_id="` + r.application + `",result="aborted"}`:                              0,
		`millrace_record_lateness_seconds_count{application_id="` + r.application + `",source="clicks"}`:               len(r.input.all),
		`millrace_end_to_end_latency_seconds_count{application_id="` + r.application + `",sink="late"}`:                late,
	}
	var body string
	busy := `millrace_task_busy_seconds_total{application_id="` + r.application + `",subtopology="0"} `
	ok := polled(patience, func() bool {
		_, body = c.get("/metrics")
		if strings.Contains(body, busy+"0\n") || !strings.Contains(body, busy) {
			return false
		}
		for name, n := range want {
			if !strings.Contains(body, name+" "+number(n)+"\n") {
				return false
			}
		}
		return true
	})
	if ok {
		return
	}
	r.t.Errorf("metrics do not add up; %smust be above 0", busy)
	for name, n := range want {
		if !strings.Contains(body, name+" "+number(n)+"\n") {
			r.t.Errorf("metrics do not have %s %d", name, n)
		}
	}
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "millrace_") {
			r.t.Log(strings.TrimSpace(line))
		}
	}
}

func number(n int) string {
	b, _ := json.Marshal(n) // numbers always encode
	return string(b)
}

func (r *run) documents(c *replica) {
	r.t.Helper()
	var status struct {
		ApplicationID string `json:"application_id"`
		State         string
		Live, Ready   bool
		LagRecords    int64 `json:"lag_records"`
		Tasks         []struct{ Task, State string }
		Commits       struct{ OK int64 }
	}
	r.document(c, "/v1/status", &status)
	if status.ApplicationID != r.application || status.State != "running" || !status.Live || !status.Ready || status.LagRecords != 0 ||
		len(status.Tasks) != int(r.partitions) || status.Commits.OK == 0 {
		r.t.Errorf("/v1/status: %+v", status)
	}
	var marks struct {
		Watermarks []struct {
			Topic     string
			Partition int32
			Watermark string
		}
	}
	r.document(c, "/v1/watermarks", &marks)
	if len(marks.Watermarks) != int(r.partitions) || marks.Watermarks[0].Topic != r.in || !strings.HasPrefix(marks.Watermarks[0].Watermark, "2020-09-13T") {
		r.t.Errorf("/v1/watermarks: %+v", marks)
	}
	var restores struct {
		Restoring int
		Restores  []struct {
			Task, Store, State string
			Remaining          int64
		}
	}
	r.document(c, "/v1/restore", &restores)
	if restores.Restoring != 0 || len(restores.Restores) != int(r.partitions) || restores.Restores[0].Store != r.job.step || restores.Restores[0].State != "done" {
		r.t.Errorf("/v1/restore: %+v", restores)
	}
	for path, want := range map[string]string{"/v1/topology": r.job.step, "/v1/topology?format=json": `"`, "/v1/topology?format=mermaid": r.job.step, "/debug/config": r.application, "/": "<html", "/version": "version"} {
		if code, body := c.get(path); code != http.StatusOK || !strings.Contains(body, want) {
			r.t.Errorf("%s: %d, without %q:\n%.400s", path, code, want, body)
		}
	}
	if code, _ := c.get("/v1/nothing"); code != http.StatusNotFound {
		r.t.Errorf("an unknown path gives %d", code)
	}
}

func (r *run) document(c *replica, path string, to any) {
	r.t.Helper()
	code, body := c.get(path)
	if code != http.StatusOK {
		r.t.Fatalf("%s: %d %s", path, code, body)
	}
	if err := json.Unmarshal([]byte(body), to); err != nil {
		r.t.Fatalf("%s: %v\n%s", path, err, body)
	}
}
