package kafka

import (
	"errors"
	"time"

	"github.com/IBM/sarama"
)

// requested reports one request: err is the answer's code, or why there is no answer. sarama's own registry would tell
// neither, and costs two lookups a request.
func (c *Client) requested(api string, begun time.Time, err error) {
	if c.config.Requested == nil {
		return
	}
	result := "ok"
	var code sarama.KError
	switch {
	case errors.As(err, &code):
		result = "error"
	case err != nil:
		result = "unanswered"
	}
	c.config.Requested(api, result, time.Since(begun))
}

// fetch sends one request of a fetcher or a restore. An answer that arrived and cannot be read is errUnreadable.
func (c *Client) fetch(b *sarama.Broker, request *sarama.FetchRequest) (*sarama.FetchResponse, error) {
	begun := time.Now()
	response, err := b.Fetch(request)
	if err == nil {
		err = asError(sarama.KError(response.ErrorCode))
	}
	c.requested("fetch", begun, err)
	if err != nil {
		return nil, unreadable(err)
	}
	return response, nil
}
