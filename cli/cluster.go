package cli

import (
	"context"
	"time"

	"millrace/changelog"
	"millrace/config"
	"millrace/kafka"
	"millrace/rebalance"
	"millrace/record"
	"millrace/task"
)

// cluster is a Kafka client as tasks and the manager want it.
type cluster struct{ *kafka.Client }

func (c cluster) Changelog(tp record.TopicPartition) (changelog.Reader, func(), error) {
	r, err := c.NewReader(tp)
	if err != nil {
		return nil, nil, err
	}
	return r, r.Close, nil
}

func (c cluster) TombstoneRetention(ctx context.Context, topic string) time.Duration {
	d, _ := c.DeleteRetention(ctx, topic) // unknown is 0, as the caller wants it
	return d
}

type fetcher struct{ *kafka.Fetcher }

func (f fetcher) Add(tp record.TopicPartition, next record.Offset, sink task.Sink) {
	f.Fetcher.Add(tp, next, sink)
}

// planner is the layout as the group's protocol wants it.
type planner struct {
	layout *rebalance.Layout
	local  func() []record.TaskID
}

func (p planner) UserData() []byte { return p.layout.EncodeUserData(p.local()) }

func (p planner) Plan(members []kafka.GroupMember) (map[string][]record.TopicPartition, error) {
	peers := make([]rebalance.Peer, len(members))
	for i, m := range members {
		peers[i] = rebalance.Peer{ID: m.ID, UserData: m.UserData, Owned: m.Owned, Generation: m.Generation}
	}
	return p.layout.Plan(peers)
}

// kafkaConfig turns the settings into the client's.
func kafkaConfig(s config.Settings, replica string) kafka.Config {
	k := s.Kafka
	return kafka.Config{
		Brokers: k.BootstrapServers, ClientID: k.ClientID, Group: s.ApplicationID, InstanceID: k.GroupInstanceID,
		TransactionalID: s.ApplicationID + "-" + replica,
		SessionTimeout:  k.SessionTimeout, Heartbeat: k.HeartbeatInterval, RebalanceTimeout: k.RebalanceTimeout,
		FetchMaxBytes: int32(k.Consumer.FetchMaxBytes), FetchMaxWait: k.Consumer.FetchMaxWait,
		Compression: k.Producer.Compression, MaxBatchBytes: int(k.Producer.MaxBatchBytes), TransactionTimeout: k.Producer.TransactionTimeout,
		ExactlyOnce: s.Processing.Guarantee != "at_least_once", Security: security(k),
	}
}

func security(k config.Kafka) kafka.Security {
	return kafka.Security{
		TLS: kafka.TLS{Enabled: k.TLS.Enabled, CAFile: k.TLS.CAFile, CertFile: k.TLS.CertFile, KeyFile: k.TLS.KeyFile, ServerName: k.TLS.ServerName, InsecureSkipVerify: k.TLS.InsecureSkipVerify},
		SASL: kafka.SASL{Mechanism: k.SASL.Mechanism, Username: k.SASL.Username, Password: kafka.NewSecret(k.SASL.Password.Reveal()),
			OAuth: kafka.OAuth{TokenURL: k.SASL.OAuth.TokenURL, ClientID: k.SASL.OAuth.ClientID, ClientSecret: kafka.NewSecret(k.SASL.OAuth.ClientSecret.Reveal()), Scopes: k.SASL.OAuth.Scopes}},
	}
}
