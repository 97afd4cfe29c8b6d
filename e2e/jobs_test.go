package e2e

import (
	"fmt"
	"strings"
)

// job is a topology whose exact result the oracle knows.
type job struct {
	name     string
	stateful bool
	step     string // names the changelog
	topology string
	verify   func(partitions int32, all []click, o output) verdict
}

// The topics are put in for IN, OUT and LATE.
var (
	finalJob = job{"final", true, "user_minutes", windowedTopology("user_minutes", "value.user", "final"), verifyFinal}

	changesJob = job{"changes", true, "user_minutes", windowedTopology("user_minutes", "value.user", "changes"), verifyChanges}

	shuffledJob = job{"shuffled", true, "ad_minutes", windowedTopology("ad_minutes", "value.ad", "final"), verifyShuffled}

	statelessJob = job{"stateless", false, "", `
topology:
  sources:
    clicks:
      topic: IN
      format: json
      key: value.user
      fields: { n: long, user: string, ad: string, ts: timestamp_ms, amount: decimal }
      timestamp: value.ts
  steps:
    dear:
      from: clicks
      where: value.amount >= 500
      select: { n: value.n, user: value.user, amount: value.amount }
      to: out
  sinks:
    out: { topic: OUT, format: json }
`, verifyStateless}

	jobs = []job{finalJob, changesJob, shuffledJob, statelessJob}
)

func windowedTopology(step, by, emit string) string {
	return fmt.Sprintf(`
topology:
  sources:
    clicks:
      topic: IN
      format: json
      key: value.user
      fields: { n: long, user: string, ad: string, ts: timestamp_ms, amount: decimal }
      timestamp: value.ts
      watermark: { max_out_of_orderness: 0s, idle_timeout: 30m }
  steps:
    %s:
      from: clicks
      group_by: %s
      window: { type: tumbling, size: 1m, allowed_lateness: 30s }
      aggregate: { count: count(), amount: sum(value.amount) }
      emit: %s
      late: { to: late }
      to: out
  sinks:
    out: { topic: OUT, format: json }
    late: { topic: LATE, format: json }
`, step, by, emit)
}

// settings is what all jobs have outside of their topology: commits as often and sessions as short as a busy machine
// allows, so that much happens in little time.
type settings struct {
	application, brokers string
	guarantee            string
	session              string
	flush                string
	more                 string // further top-level YAML
	kafka                string // further lines of kafka:, indented by two
}

func (s settings) yaml() string {
	or := func(text, fallback string) string {
		if text == "" {
			return fallback
		}
		return text
	}
	return fmt.Sprintf(`version: 1
application_id: %s
kafka:
  bootstrap_servers: ["%s"]
  session_timeout: %s
  rebalance_timeout: 3s
  consumer: { fetch_max_wait: 50ms }
%sprocessing: { guarantee: %s, commit_interval: 20ms }
state: { memory_budget: 64MiB, flush_interval: %s, min_free_bytes: 0B }
http: { listen: "127.0.0.1:0" }
shutdown_timeout: 20s
%s`, s.application, strings.ReplaceAll(s.brokers, ",", `", "`), or(s.session, "3s"), s.kafka, or(s.guarantee, "exactly_once"), or(s.flush, "50ms"), s.more)
}
