package config

import "time"

// Kafka holds the settings of the connection to the brokers.
type Kafka struct {
	// BootstrapServers are the brokers to ask first, as host:port. Required. In the environment they are separated by commas.
	BootstrapServers []string `mapstructure:"bootstrap_servers"`
	// ClientID names this job in the brokers' logs, quotas and metrics.
	ClientID string `mapstructure:"client_id"`
	// GroupInstanceID makes the process a static member of the group: a restart within the session timeout moves no
	// partitions. Each process needs its own, such as its pod's name; empty means a dynamic member.
	GroupInstanceID string `mapstructure:"group_instance_id"`
	// SessionTimeout is the silence after which the group gives this process's partitions to others. For a static member longer than a restart takes.
	SessionTimeout time.Duration `mapstructure:"session_timeout"`
	// HeartbeatInterval is the time between two signs of life to the group. At most a third of the session timeout and of the
	// rebalance timeout; where it is not set, shorter ones lower it.
	HeartbeatInterval time.Duration `mapstructure:"heartbeat_interval"`
	// RebalanceTimeout is how long the group waits for this process to commit and give up partitions.
	RebalanceTimeout time.Duration `mapstructure:"rebalance_timeout"`
	// TLS encrypts the connection.
	TLS TLS `mapstructure:"tls"`
	// SASL authenticates this process to the brokers.
	SASL SASL `mapstructure:"sasl"`
	// Consumer holds the settings of reading. Transactions that were aborted are never read: that is not a setting.
	Consumer Consumer `mapstructure:"consumer"`
	// Producer holds the settings of writing. Every write is acknowledged by all in-sync replicas: that is not a setting.
	Producer Producer `mapstructure:"producer"`
}

// TLS encrypts the connection to the brokers.
type TLS struct {
	// Enabled switches TLS on, version 1.2 or newer.
	Enabled bool `mapstructure:"enabled"`
	// CAFile is a PEM file with the authorities that sign the brokers' certificates; empty takes the system's.
	CAFile string `mapstructure:"ca_file"`
	// CertFile is a PEM file with this process's own certificate, for mutual TLS.
	CertFile string `mapstructure:"cert_file"`
	// KeyFile is a PEM file with the key of cert_file.
	KeyFile string `mapstructure:"key_file"`
	// ServerName is the name to expect in the brokers' certificates instead of the one that was dialled.
	ServerName string `mapstructure:"server_name"`
	// InsecureSkipVerify accepts any certificate, and with it anybody who answers. For experiments only.
	InsecureSkipVerify bool `mapstructure:"insecure_skip_verify"`
}

// SASL authenticates this process to the brokers.
type SASL struct {
	// Mechanism is PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER; empty means no authentication.
	Mechanism string `mapstructure:"mechanism" words:"PLAIN|SCRAM-SHA-256|SCRAM-SHA-512|OAUTHBEARER"`
	// Username for PLAIN and SCRAM.
	Username string `mapstructure:"username"`
	// Password for PLAIN and SCRAM. Refer to it, as in ${env:KAFKA_PASSWORD}, rather than writing it.
	Password Secret `mapstructure:"password"`
	// PasswordFile is a file that holds the password; a newline at its end is left out. Instead of password.
	PasswordFile string `mapstructure:"password_file"`
	// OAuth holds the settings of OAUTHBEARER.
	OAuth OAuth `mapstructure:"oauth"`
}

// OAuth is the client-credentials flow of OAUTHBEARER.
type OAuth struct {
	// TokenURL is where tokens are asked for; https, except on this machine.
	TokenURL string `mapstructure:"token_url"`
	// ClientID is the client's name at the token server.
	ClientID string `mapstructure:"client_id"`
	// ClientSecret is the client's password at the token server. Refer to it rather than writing it.
	ClientSecret Secret `mapstructure:"client_secret"`
	// ClientSecretFile is a file that holds the client's secret. Instead of client_secret.
	ClientSecretFile string `mapstructure:"client_secret_file"`
	// Scopes to ask for.
	Scopes []string `mapstructure:"scopes"`
}

// Consumer holds the settings of reading from Kafka.
type Consumer struct {
	// AutoOffsetReset says where a source begins that has no committed offset and no `start:` of its own: earliest or latest.
	AutoOffsetReset string `mapstructure:"auto_offset_reset" words:"earliest|latest"`
	// FetchMaxBytes is what one answer of a broker may hold, in bytes.
	FetchMaxBytes Size `mapstructure:"fetch_max_bytes"`
	// FetchMaxWait is how long a broker may wait for records before it answers with none. At most a tenth of the session timeout; where it is not
	// set, a shorter session timeout lowers it.
	FetchMaxWait time.Duration `mapstructure:"fetch_max_wait"`
}

// Producer holds the settings of writing to Kafka.
type Producer struct {
	// Compression of what is written: none, snappy, lz4, zstd or gzip.
	Compression string `mapstructure:"compression" words:"none|snappy|lz4|zstd|gzip"`
	// MaxBatchBytes is the largest batch of records that is sent, and the largest record, before compression, in bytes. At most the brokers' message.max.bytes. Batches of several records have at most 256 KiB.
	MaxBatchBytes Size `mapstructure:"max_batch_bytes"`
	// TransactionTimeout is how long a transaction may stay open; a process that crashes blocks readers of committed
	// records for up to this long. At most the session timeout; where it is not set, a shorter session timeout lowers it.
	TransactionTimeout time.Duration `mapstructure:"transaction_timeout"`
}

func defaultKafka() Kafka {
	return Kafka{
		ClientID:          "millrace",
		SessionTimeout:    45 * time.Second,
		HeartbeatInterval: 3 * time.Second,
		RebalanceTimeout:  time.Minute,
		Consumer:          Consumer{AutoOffsetReset: "earliest", FetchMaxBytes: 16 << 20, FetchMaxWait: 500 * time.Millisecond},
		Producer:          Producer{Compression: "none", MaxBatchBytes: 960 << 10, TransactionTimeout: 10 * time.Second},
	}
}
