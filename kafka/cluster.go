package kafka

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// anyTopic is asked about where the answer about brokers counts: sarama takes a request about no topic for one about all
// of them. A fresh cluster does not have it yet, which does no harm.
const anyTopic = "__consumer_offsets"

// Describe returns the number of brokers and the cluster's own name; zero values if the brokers do not tell.
func (c *Client) Describe() (brokers int, cluster string) {
	m, err := c.metadata([]string{anyTopic})
	if err != nil {
		return 0, ""
	}
	return len(m.Brokers), text(m.ClusterID)
}

// Existing returns the number of partitions of those topics that exist. It asks once and does not wait for a topic to
// appear.
func (c *Client) Existing(topics []string) (map[string]int32, error) {
	if len(topics) == 0 {
		return map[string]int32{}, nil
	}
	m, err := c.metadata(topics)
	if err != nil {
		return nil, fmt.Errorf("look for topics: %w", err)
	}
	found := map[string]int32{}
	for _, t := range m.Topics {
		switch err := asError(t.Err); {
		case err == nil:
			found[t.Name] = int32(len(t.Partitions))
		case kindOf(err) == configuration:
			return nil, reaction("look for topic "+t.Name, c.config.denied(err, "Describe", t.Name))
		}
	}
	return found, nil
}

// metadata asks the brokers of the configuration, one after the other, until one answers.
func (c *Client) metadata(topics []string) (*sarama.MetadataResponse, error) {
	var errs []error
	for _, addr := range c.config.Brokers {
		b, err := open(addr, c.base)
		if err == nil {
			var m *sarama.MetadataResponse
			m, err = b.GetMetadata(&sarama.MetadataRequest{Version: 10, Topics: topics})
			closeBroker(b)
			if err == nil {
				return m, nil
			}
			err = fmt.Errorf("ask %s: %w", addr, err)
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// Partitions returns the number of a topic's partitions.
func (c *Client) Partitions(topic string) (int32, error) {
	if err := c.sarama.RefreshMetadata(topic); err != nil {
		return 0, fmt.Errorf("topic %s: %w", topic, err)
	}
	p, err := c.sarama.Partitions(topic)
	if err != nil {
		return 0, fmt.Errorf("topic %s: %w", topic, err)
	}
	return int32(len(p)), nil
}

// learn makes sarama know the brokers and their controller. They come with the metadata of any topic, even of one that
// does not exist, and sarama asks for none of its own accord.
func (c *Client) learn() error {
	_, err := c.sarama.Controller()
	if errors.Is(err, sarama.ErrNoTopicsToUpdateMetadata) {
		_ = c.sarama.RefreshMetadata(anyTopic) // Controller tells what came of it
		_, err = c.sarama.Controller()
	}
	if err != nil {
		return fmt.Errorf("find the brokers of the cluster: %w", err)
	}
	return nil
}

// admin returns sarama's admin. It lives as long as the client and is not closed.
func (c *Client) admin() (sarama.ClusterAdmin, error) {
	if err := c.learn(); err != nil {
		return nil, err
	}
	return sarama.NewClusterAdminFromClient(keepOpen{c.sarama})
}

// keepOpen lets an admin be made from our client without closing it.
type keepOpen struct{ sarama.Client }

func (keepOpen) Close() error { return nil }
