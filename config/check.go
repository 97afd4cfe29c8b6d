package config

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/topology"
)

// applicationID is what a group id, a topic name and a folder name all allow, with room for the suffixes of internal topics.
var applicationID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

// settle completes values that follow from others: a default gives way to a limit that was written.
func (l *settingsLoader) settle() {
	s := &l.settings
	if s.Processing.Guarantee == "exactly_once_v2" {
		s.Processing.Guarantee = "exactly_once"
	}
	lower := func(key string, value *time.Duration, limit time.Duration) {
		if l.origins[key].Kind == FromDefault && limit > 0 {
			*value = min(*value, limit)
		}
	}
	session := s.Kafka.SessionTimeout
	lower("kafka.heartbeat_interval", &s.Kafka.HeartbeatInterval, session/3)
	lower("kafka.heartbeat_interval", &s.Kafka.HeartbeatInterval, s.Kafka.RebalanceTimeout/3)
	lower("kafka.consumer.fetch_max_wait", &s.Kafka.Consumer.FetchMaxWait, session/10)
	lower("kafka.producer.transaction_timeout", &s.Kafka.Producer.TransactionTimeout, session)
	if l.origins["processing.max_epoch_bytes"].Kind == FromDefault {
		s.Processing.MaxEpochBytes = min(s.Processing.MaxEpochBytes, max(s.State.MemoryBudget/4, 1<<20))
	}
	l.readSecret("kafka.sasl.password", "kafka.sasl.password_file", &s.Kafka.SASL.Password, s.Kafka.SASL.PasswordFile)
	l.readSecret("http.admin_token", "http.admin_token_file", &s.HTTP.AdminToken, s.HTTP.AdminTokenFile)
	l.readSecret("kafka.sasl.oauth.client_secret", "kafka.sasl.oauth.client_secret_file", &s.Kafka.SASL.OAuth.ClientSecret, s.Kafka.SASL.OAuth.ClientSecretFile)
}

// readSecret fills a secret from the file that holds it.
func (l *settingsLoader) readSecret(key, fileKey string, secret *Secret, file string) {
	if file == "" {
		return
	}
	if *secret != "" {
		l.fail(fileKey, codeSecurity, key+" is set too", "keep one of them")
		return
	}
	value, exposed, err := readSecretFile(file)
	if err != nil {
		l.fail(fileKey, codeReference, err.Error(), "")
		l.broken[key] = true
		return
	}
	if exposed {
		l.found.warn(l.origins[fileKey].Pos, warnSecretMode, fmt.Sprintf("%s: every user of this machine may read %s", fileKey, file), "chmod o-r")
	}
	*secret = Secret(value)
}

// fail adds an error about a setting by its key.
func (l *settingsLoader) fail(key, code, message, hint string) {
	for _, o := range l.options {
		if o.key == key {
			l.report(o, code, message, hint)
			return
		}
	}
	panic("config: no setting " + key) // a misspelt key in a check is a bug of ours
}

// check finds what single values and their combinations get wrong.
func (l *settingsLoader) check() {
	l.checkWords()
	l.checkRanges()
	l.checkRequired()
	l.checkAgreement()
	l.checkTLS()
	l.checkSASL()
	l.checkLiteralSecrets()
	l.checkHTTP()
	l.checkErrors()
}

func (l *settingsLoader) checkWords() {
	for _, o := range l.options {
		if len(o.words) == 0 || l.origins[o.key].Kind == FromDefault {
			continue
		}
		if word := o.value(&l.settings).String(); !slices.Contains(o.words, word) {
			l.report(o, codeWord, quoteSource(fmt.Sprintf("%q is not one of its words", word), l.origins[o.key]), didYouMean(word, o.words))
			l.broken[o.key] = true
		}
	}
}

func (l *settingsLoader) checkRanges() {
	s := &l.settings
	spans := []struct {
		key        string
		value      time.Duration
		least, top time.Duration
	}{
		{"kafka.session_timeout", s.Kafka.SessionTimeout, time.Second, 30 * time.Minute},
		{"kafka.heartbeat_interval", s.Kafka.HeartbeatInterval, time.Millisecond, 10 * time.Minute},
		{"kafka.rebalance_timeout", s.Kafka.RebalanceTimeout, time.Second, time.Hour},
		{"kafka.consumer.fetch_max_wait", s.Kafka.Consumer.FetchMaxWait, time.Millisecond, time.Minute},
		{"kafka.producer.transaction_timeout", s.Kafka.Producer.TransactionTimeout, time.Second, 15 * time.Minute},
		{"processing.commit_interval", s.Processing.CommitInterval, time.Millisecond, 3 * time.Minute},
		{"state.flush_interval", s.State.FlushInterval, 10 * time.Millisecond, time.Hour},
		{"shutdown_timeout", s.ShutdownTimeout, 100 * time.Millisecond, time.Hour},
	}
	for _, r := range spans {
		if r.value < r.least || r.value > r.top {
			l.fail(r.key, codeRange, fmt.Sprintf("%s lies outside of %s to %s", formatDuration(r.value), formatDuration(r.least), formatDuration(r.top)), "")
		}
	}
	sizes := []struct {
		key        string
		value      Size
		least, top Size
	}{
		{"kafka.consumer.fetch_max_bytes", s.Kafka.Consumer.FetchMaxBytes, 64 << 10, 1 << 30},
		{"kafka.producer.max_batch_bytes", s.Kafka.Producer.MaxBatchBytes, 1 << 10, 64 << 20},
		{"processing.max_epoch_bytes", s.Processing.MaxEpochBytes, 64 << 10, 16 << 30},
		{"state.memory_budget", s.State.MemoryBudget, 16 << 20, 1 << 40},
		{"state.min_free_bytes", s.State.MinFreeBytes, 0, 1 << 50},
	}
	for _, r := range sizes {
		if r.value < r.least || r.value > r.top {
			l.fail(r.key, codeRange, fmt.Sprintf("%s lies outside of %s to %s", r.value, r.least, r.top), "")
		}
	}
	if rf := s.State.Changelog.ReplicationFactor; rf != -1 && (rf < 1 || rf > 1000) {
		l.fail("state.changelog.replication_factor", codeRange, fmt.Sprintf("%d is neither -1 nor a number of brokers", rf), "-1 is the broker's default")
	}
	switch n := s.State.StandbyReplicas; {
	case n < 0:
		l.fail("state.standby_replicas", codeRange, fmt.Sprintf("%d is negative", n), "")
	case n > 0:
		l.fail("state.standby_replicas", codeUnavailable, "standby replicas are not available in this version", "write 0; a moved task restores from its changelog")
	}
	if s.Version != 1 {
		l.fail("version", codeUnavailable, fmt.Sprintf("this program reads version 1 of the format, not %d", s.Version), "a newer file needs a newer program")
	}
}

func (l *settingsLoader) checkRequired() {
	s := &l.settings
	switch {
	case s.ApplicationID == "":
		l.fail("application_id", codeMissing, "is missing", "it names the consumer group and the state, as in application_id: ad-clicks")
	case !applicationID.MatchString(s.ApplicationID):
		l.fail("application_id", codeName, fmt.Sprintf("%q is not a usable name", s.ApplicationID), "letters, digits, '.', '_' and '-', at most 128, not beginning with a sign")
	}
	if s.State.Dir == "" {
		l.fail("state.dir", codeMissing, "is missing", "name a folder that survives a restart, as in /var/lib/millrace")
	}
	if len(s.Kafka.BootstrapServers) == 0 {
		l.fail("kafka.bootstrap_servers", codeMissing, "is missing", "name one or more brokers, as in [\"localhost:9092\"]")
	}
	l.checkServers()
}

// checkServers points at the broker in question where the list was written as one.
func (l *settingsLoader) checkServers() {
	const key = "kafka.bootstrap_servers"
	written := l.origins[key]
	for i, server := range l.settings.Kafka.BootstrapServers {
		err := checkAddress(server, 1)
		if err == nil {
			continue
		}
		hint := "write host:port, as in localhost:9092"
		if n := written.node; n != nil && len(n.items) == len(l.settings.Kafka.BootstrapServers) && !l.broken[key] {
			l.found.at(n.items[i], codeAddress, key+": "+quoteSource(err.Error(), Origin{node: n.items[i]}), hint)
			continue
		}
		l.fail(key, codeAddress, quoteSource(err.Error(), written), hint)
	}
}

func checkAddress(address string, leastPort int) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not an address with a port", address)
	}
	if n, err := strconv.Atoi(port); err != nil || n < leastPort || n > 65535 {
		return fmt.Errorf("%q has no valid port", address)
	}
	if strings.ContainsAny(host, "/ @") || (host == "" && leastPort > 0) {
		return fmt.Errorf("%q has no valid host", address)
	}
	return nil
}

// checkAgreement compares the timeouts that must fit into each other: a commit must end well before its transaction
// times out, and a transaction before the group gives the partitions away.
func (l *settingsLoader) checkAgreement() {
	s := &l.settings
	session, transaction, commit := s.Kafka.SessionTimeout, s.Kafka.Producer.TransactionTimeout, s.Processing.CommitInterval
	rules := []struct {
		small, large string
		value, limit time.Duration
		hint         string
	}{
		{"processing.commit_interval", "a fifth of kafka.producer.transaction_timeout", commit, transaction / 5,
			"raise kafka.producer.transaction_timeout to " + formatDuration(5*commit) + ", or commit more often"},
		{"kafka.producer.transaction_timeout", "kafka.session_timeout", transaction, session, "raise kafka.session_timeout, or lower this one"},
		{"kafka.heartbeat_interval", "a third of kafka.session_timeout", s.Kafka.HeartbeatInterval, session / 3, "two lost heartbeats must not cost the partitions"},
		{"kafka.heartbeat_interval", "a third of kafka.rebalance_timeout", s.Kafka.HeartbeatInterval, s.Kafka.RebalanceTimeout / 3,
			"the answer to a heartbeat is what tells of a rebalance, and who joins it too late is put out of the group"},
		{"kafka.consumer.fetch_max_wait", "a tenth of kafka.session_timeout", s.Kafka.Consumer.FetchMaxWait, session / 10, ""},
		{"processing.commit_interval", "a third of kafka.rebalance_timeout", commit, s.Kafka.RebalanceTimeout / 3, "a rebalance has to wait for a commit"},
	}
	for _, r := range rules {
		if r.value > r.limit {
			l.fail(r.small, codeDisagree, fmt.Sprintf("%s is more than %s (%s)", formatDuration(r.value), r.large, formatDuration(r.limit.Truncate(time.Millisecond))), r.hint)
		}
	}
	if s.Processing.MaxEpochBytes > s.State.MemoryBudget && l.origins["processing.max_epoch_bytes"].Kind != FromDefault {
		l.fail("processing.max_epoch_bytes", codeDisagree, fmt.Sprintf("%s is more than state.memory_budget (%s)", s.Processing.MaxEpochBytes, s.State.MemoryBudget),
			"uncommitted state counts against the budget")
	}
}

// loopback tells whether an address leads back to this machine.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}

// leastToken is the least length of a token.
const leastToken = 16

func (l *settingsLoader) checkHTTP() {
	h := l.settings.HTTP
	if h.Listen == "" {
		return
	}
	if err := checkAddress(h.Listen, 0); err != nil {
		l.fail("http.listen", codeAddress, quoteSource(err.Error(), l.origins["http.listen"]), "write host:port, as in 127.0.0.1:8080")
		return
	}
	if host, _, _ := net.SplitHostPort(h.Listen); !h.AllowRemote && !loopback(host) {
		l.fail("http.listen", codeSecurity, fmt.Sprintf("%q can be reached from other machines, and the endpoints ask for no password", h.Listen),
			"listen on 127.0.0.1, or permit it with http.allow_remote: true")
	}
	if token := h.AdminToken.Reveal(); token != "" && len(token) < leastToken {
		l.fail("http.admin_token", codeSecurity, fmt.Sprintf("the token has %d bytes and could be guessed", len(token)), fmt.Sprintf("use at least %d, as from `openssl rand -hex 16`", leastToken))
	}
}

func (l *settingsLoader) checkErrors() {
	e := l.settings.Errors
	if e.DeadLetterTopic != "" && !topicName.MatchString(e.DeadLetterTopic) {
		l.fail("errors.dead_letter_topic", codeName, fmt.Sprintf("%q is not the name of a topic", e.DeadLetterTopic), "letters, digits, '.', '_' and '-', at most 249")
	}
	for _, policy := range []struct{ key, word string }{
		{"errors.deserialization", e.Deserialization}, {"errors.processing", e.Processing}, {"errors.production", e.Production},
	} {
		if policy.word == "dead_letter" && e.DeadLetterTopic == "" {
			l.fail(policy.key, codeMissing, "dead_letter needs errors.dead_letter_topic", "name the topic, as in dead_letter_topic: ad-clicks.dead_letter")
			return
		}
	}
}

func (l *settingsLoader) warnAt(key, code, message, hint string) {
	origin := l.origins[key]
	finding := topology.Finding{Severity: topology.Warning, Code: code, Pos: origin.Pos, Message: key + ": " + message, Hint: hint}
	if origin.node != nil {
		finding.Len = origin.node.width
	}
	l.found.add(finding)
}
