package config

import "time"

// Settings is everything of a job outside of `topology:` and `tests:`. Each field's comment is the source of its entry in the
// reference page; Default holds its default.
type Settings struct {
	// Version of the configuration format. This program reads version 1.
	Version int `mapstructure:"version"`
	// ApplicationID is the job's identity: the consumer group's id, and the prefix of the transactional ids, of the changelog
	// and repartition topics and of the state's folder. Required. Changing it starts a new job from nothing.
	ApplicationID string `mapstructure:"application_id"`

	Kafka      Kafka      `mapstructure:"kafka"`
	Processing Processing `mapstructure:"processing"`
	State      State      `mapstructure:"state"`
	Errors     Errors     `mapstructure:"errors"`
	HTTP       HTTP       `mapstructure:"http"`
	Log        Log        `mapstructure:"log"`
	Metrics    Metrics    `mapstructure:"metrics"`

	// ShutdownTimeout bounds a clean stop: draining, the last commit, the last flush. After it the process cuts off, which loses
	// nothing but makes the next start restore a little. Keep it below the grace period of whatever stops the process.
	ShutdownTimeout time.Duration `mapstructure:"shutdown_timeout"`
}

// Processing says what a commit promises and how often one happens.
type Processing struct {
	// Guarantee is exactly_once (exactly_once_v2, the word of Kafka Streams, means the same) or at_least_once, which commits
	// without a transaction: after a crash results may be repeated.
	Guarantee string `mapstructure:"guarantee" words:"exactly_once|exactly_once_v2|at_least_once"`
	// CommitInterval is the time between two commits. It is also how much later a reader sees a result. At most a fifth of
	// kafka.producer.transaction_timeout.
	CommitInterval time.Duration `mapstructure:"commit_interval"`
	// LingerInterval lets an epoch end early, once all that has arrived is done and this long has passed since the last
	// commit: results come sooner while there is little to do, for more transactions. 0s commits by commit_interval alone.
	LingerInterval time.Duration `mapstructure:"linger_interval"`
	// MaxEpochBytes ends an epoch early once it has this much to send or this much uncommitted state, in bytes. At most
	// state.memory_budget; where it is not set, a small budget lowers it to a quarter.
	MaxEpochBytes Size `mapstructure:"max_epoch_bytes"`
}

// State says where the local state lives and what it may cost.
type State struct {
	// Dir is the folder of the local state. Required, and never a temporary folder: a lost folder is restored from
	// Kafka, which takes time. Two processes may not share one.
	Dir string `mapstructure:"dir"`
	// MemoryBudget bounds what all stores of the process keep in memory together, in bytes.
	MemoryBudget Size `mapstructure:"memory_budget"`
	// FlushInterval is the time between two writes of committed state to disk. A crash replays at most this much from the
	// changelog.
	FlushInterval time.Duration `mapstructure:"flush_interval"`
	// StandbyReplicas is the number of further processes that keep a warm copy of each task's state. This version has none: 0.
	StandbyReplicas int `mapstructure:"standby_replicas"`
	// Changelog holds the settings of the changelog topics.
	Changelog Changelog `mapstructure:"changelog"`
	// MinFreeBytes is the free space below which a task takes no more input, in bytes; 0 switches the guard off. A full disk
	// would otherwise end the process in the middle of a write.
	MinFreeBytes Size `mapstructure:"min_free_bytes"`
	// OffsetsPolicy says what happens when the group's offsets are not where the task's last commit left them: fail
	// stops and explains, progress goes on from the task's own record of its progress.
	OffsetsPolicy string `mapstructure:"offsets_policy" words:"fail|progress"`
}

// Changelog holds the settings of the changelog topics.
type Changelog struct {
	// ReplicationFactor of a changelog or repartition topic that is created; -1 leaves it to the broker's default.
	ReplicationFactor int `mapstructure:"replication_factor"`
}

// Errors says what a record gets that cannot be read, computed or written.
type Errors struct {
	// Deserialization is the policy for a record that its source's format cannot read: fail stops the job, skip counts it and goes on,
	// dead_letter also sends it to errors.dead_letter_topic.
	Deserialization string `mapstructure:"deserialization" words:"fail|skip|dead_letter"`
	// Processing is the policy for a record on which an expression fails: fail, skip or dead_letter.
	Processing string `mapstructure:"processing" words:"fail|skip|dead_letter"`
	// Production is the policy for a result that the broker refuses, such as one that is too large: fail, skip or dead_letter.
	Production string `mapstructure:"production" words:"fail|skip|dead_letter"`
	// DeadLetterTopic is the topic of the records under the policy dead_letter. Required when one of the policies is that.
	DeadLetterTopic string `mapstructure:"dead_letter_topic"`
}

// HTTP holds the settings of the health, metrics and administration endpoints and of the web page.
type HTTP struct {
	// Listen is the address of the endpoints, as host:port; port 0 takes any free one, an empty address switches them off.
	Listen string `mapstructure:"listen"`
	// AllowRemote permits an address that other machines can reach. The endpoints ask for no password.
	AllowRemote bool `mapstructure:"allow_remote"`
	// AdminToken opens /v1/log-level and /debug/pprof/ to requests that send it as a bearer token; without it they do not exist. Refer to it, as in ${env:ADMIN_TOKEN}, rather than writing it.
	AdminToken Secret `mapstructure:"admin_token"`
	// AdminTokenFile is a file that holds the token; a newline at its end is left out. Instead of admin_token.
	AdminTokenFile string `mapstructure:"admin_token_file"`
}

// Log holds the settings of the log, which goes to standard error.
type Log struct {
	// Level is the least severity that is logged: debug, info, warn or error.
	Level string `mapstructure:"level" words:"debug|info|warn|error"`
	// Format is console for people or json for machines.
	Format string `mapstructure:"format" words:"console|json"`
}

// Metrics holds the settings of the metrics.
type Metrics struct {
	// PartitionLabels labels lag and watermark metrics with topic and partition. Switch it off when a job reads thousands of partitions.
	PartitionLabels bool `mapstructure:"partition_labels"`
}

// Default returns the settings of a job that sets nothing. The required ones are empty.
func Default() Settings {
	return Settings{
		Version:         1,
		Kafka:           defaultKafka(),
		Processing:      Processing{Guarantee: "exactly_once", CommitInterval: 100 * time.Millisecond, MaxEpochBytes: 24 << 20},
		State:           State{MemoryBudget: 256 << 20, FlushInterval: 10 * time.Second, Changelog: Changelog{ReplicationFactor: -1}, MinFreeBytes: 1 << 30, OffsetsPolicy: "fail"},
		Errors:          Errors{Deserialization: "fail", Processing: "fail", Production: "fail"},
		HTTP:            HTTP{Listen: "127.0.0.1:8080"},
		Log:             Log{Level: "info", Format: "json"},
		Metrics:         Metrics{PartitionLabels: true},
		ShutdownTimeout: 25 * time.Second,
	}
}
