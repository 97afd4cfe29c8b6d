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
