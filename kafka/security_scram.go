package kafka

import (
	"fmt"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// scramIterations is the least that is accepted from a broker, and Kafka's own minimum: an impostor who asks for fewer
// could guess the password from our answer.
const scramIterations = 4096

// scramClient is one login; sarama asks for a new one for each connection.
type scramClient struct {
	mechanism    sarama.SASLMechanism
	conversation *scram.ClientConversation
}

// Begin starts the login.
func (s *scramClient) Begin(username, password, authorizationID string) error {
	hash := scram.SHA256
	if s.mechanism == sarama.SASLTypeSCRAMSHA512 {
		hash = scram.SHA512
	}
	client, err := hash.NewClient(username, password, authorizationID)
	if err != nil {
		// What the library says may quote the password's characters.
		return fmt.Errorf("%s: the username or the password holds characters that the mechanism forbids", s.mechanism)
	}
	s.conversation = client.WithMinIterations(scramIterations).NewConversation()
	return nil
}

// Step answers the broker.
func (s *scramClient) Step(challenge string) (string, error) {
	response, err := s.conversation.Step(challenge)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.mechanism, err)
	}
	return response, nil
}

// Done tells whether the login has ended.
func (s *scramClient) Done() bool { return s.conversation.Done() }
