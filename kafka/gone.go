package kafka

import (
	"context"
	"fmt"
	"time"

	"millrace/record"
)

// OffsetGone says that the log no longer has, or does not yet have, the offset that we need.
type OffsetGone struct {
	record.TopicPartition
	Offset     record.Offset // that was asked for
	Start, End record.Offset // what the log has
}

func (e *OffsetGone) Error() string {
	return fmt.Sprintf("%s: offset %d is not in the log, which has %d to %d: records were deleted before they were read, or the topic was made anew; "+
		"set the group's offset by hand, or remove it to begin at the source's start position", e.TopicPartition, e.Offset, e.Start, e.End)
}

// goneTimeout bounds the questions that gone asks.
const goneTimeout = 5 * time.Second

// gone asks how far the log reaches, after a broker has called the offset out of range: that answer does not tell. It
// returns an *OffsetGone, or nil if the offset is in the log, or if that could not be found out.
func (c *Client) gone(ctx context.Context, tp record.TopicPartition, offset record.Offset) error {
	ctx, cancel := context.WithTimeout(ctx, goneTimeout)
	defer cancel()
	start, err := c.StartOffset(ctx, tp)
	if err != nil {
		return nil
	}
	end, err := c.EndOffset(ctx, tp)
	if err != nil || start <= offset && offset <= end {
		return nil
	}
	return &OffsetGone{tp, offset, start, end}
}
