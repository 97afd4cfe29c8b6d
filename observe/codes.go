package observe

import "errors"

// Code is one stable error code: it appears in the log field `code`, in problem documents and in docs/errors.md.
type Code struct {
	ID      string
	Title   string
	Meaning string
	Action  string // what a person does about it
}

// Codes lists the codes of a running instance, those that callers give to Warn included; the configuration has its own
// (MR1). A code keeps its meaning for ever; one that is no longer used stays listed, so that an old log can be read.
var Codes = []Code{
	{"MR2001", "kafka unreachable",
		"No broker answers. Processing waits and goes on by itself; nothing is lost.",
		"Check kafka.bootstrap_servers, the network and the brokers."},
	{"MR2002", "commit aborted",
		"The transaction of an epoch was rolled back; its records are processed again.",
		"Nothing, when it happens once. When it repeats, the field `error` names the cause."},
	{"MR2003", "producer fenced",
		"The broker refused our producer: the transaction timed out, or another process uses our transactional id.",
		"If it repeats, make sure that each replica has an identity of its own (kafka.group_instance_id, state.dir)."},
	{"MR2004", "commit failed",
		"A commit ended with an error that an abort does not explain; the outcome is read back from Kafka.",
		"Look at the field `error`; check the transaction coordinator."},
	{"MR2005", "recovering",
		"An epoch failed; its in-memory changes are dropped and work goes on from the last committed position.",
		"Nothing, unless `attempt` keeps growing."},
	{"MR2006", "tasks lost",
		"The group gave our partitions away while we held them: we were too slow, paused or cut off.",
		"Check for long pauses, CPU limits and kafka.session_timeout."},
	{"MR2010", "repartition topic not purged",
		"What has been read of a repartition topic could not be deleted. The topic grows until it can; results are not affected.",
		"Give the job the permission Delete on topics with the prefix of its application_id; the field `cause` says what the broker answered."},
	{"MR2011", "partitions changed",
		"An input topic has another number of partitions than at the start. Records of the new partitions are not read: keys would be in other tasks than their state.",
		"Restart a stateless job. A job with state needs a new application_id, or its internal topics, consumer group and state directories deleted while all replicas are stopped."},
	{"MR3001", "state disk is nearly full",
		"The disk of state.dir has little space left. Processing stops before it runs out.",
		"Enlarge the volume, or shorten retention or ttl."},
	{"MR3002", "damaged store moved aside",
		"The rows of a task on disk failed a check. They were moved aside and the task is restored from its changelog; nothing is lost.",
		"Check the disk. Remove the folder that the field `to` names once nobody needs it."},
	{"MR3003", "rows on disk not usable",
		"The rows of a task on disk and its changelog do not fit: the topic was recreated, or the rows are older than the tombstones that the topic keeps. The task is restored from the changelog.",
		"Nothing, after a long absence of this replica. Otherwise the field `cause` says who changed what."},
	{"MR3004", "group offset missing",
		"The group has no offset where the state has one, most often because it has expired. The state's is used.",
		"Nothing. To keep offsets longer, raise offsets.retention.minutes on the brokers."},
	{"MR3005", "offset taken from the state",
		"The group's offset is not the one that the state stands for, and state.offsets_policy is progress: the state's is used.",
		"Set state.offsets_policy back to fail, so that the next case is looked at."},
	{"MR3006", "store not closed cleanly",
		"The state of a task could not be flushed or closed. Its next start repairs it from the changelog.",
		"Check the disk; the field `cause` says what failed."},
	{"MR3007", "the store engine says",
		"A message of the embedded store engine that is above its usual chatter.",
		"Check the disk when it repeats."},
	{"MR4002", "task failed",
		"A task met an error that its policy says not to pass over.",
		"Fix the record, the expression or the policy in errors:, then start again."},
	{"MR4003", "internal state name",
		"A part of Millrace reported an instance state that does not exist. The state was left as it was.",
		"This is a bug of ours: please report it with the log."},
	{"MR4005", "key learnt from the data",
		"A source does not declare its key, so the first record of its topic, or an internal topic of an earlier start, told whether a step must repartition.",
		"Write key: on the source; then the answer does not depend on the data. Every record is checked against it either way."},
	{"MR5001", "stopped with an error",
		"The instance could not go on. The field `error` says why.",
		"Act on the error; a restart is safe, committed results are never repeated."},
	{"MR5002", "http listener open to other hosts",
		"http.listen is not a loopback address; status and metrics are readable by whoever reaches it.",
		"Listen on 127.0.0.1, or keep strangers out with a network policy."},
	{"MR5003", "no such page",
		"The path does not exist.",
		"The page at / links to what there is."},
	{"MR5004", "method not allowed",
		"The path does not answer this method.",
		"The header Allow lists those that it answers."},
	{"MR5005", "bad query parameter",
		"A query parameter has a value that is not known.",
		"Use one of the values that the message lists."},
	{"MR5006", "page failed",
		"The answer could not be made.",
		"The field `detail` says why."},
	{"MR5007", "not healthy",
		"A health check failed; the list of checks is in the answer.",
		"Read the failed checks."},
	{"MR5008", "not authorized",
		"The path is an administrator's, and the request did not carry the token.",
		"Send the token of http.admin_token as a bearer token."},
}

// coded is an error that knows its own code. Errors of other packages may implement it.
type coded interface{ Code() string }

// codeOf returns the code that err carries, or fallback.
func codeOf(err error, fallback string) string {
	var c coded
	if errors.As(err, &c) && c.Code() != "" {
		return c.Code()
	}
	return fallback
}
