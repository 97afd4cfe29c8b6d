package topology

import (
	"encoding/binary"
	"errors"
	"math"

	"millrace/record"
)

// A Clock is a task's event time. Each channel is one input partition, or one task that writes to a repartition topic
// that we read; the watermark is the least of the channels' that are not idle, and never goes back. The clock is part
// of the committed state, so that a window that was closed before a crash stays closed after it.
type Clock struct {
	channels  []channel
	watermark int64
	holder    int // the channel that has the least watermark; -1: all are idle
	guard     int64
}

type channel struct {
	newest    int64 // newest event time (a source) or watermark (a writer upstream)
	lateness  int64 // max_out_of_orderness of a source
	watermark int64
	idle      bool
}

// NewClock returns a clock whose channels have the given bounds of disorder; all of them hold time back until they
// have been heard or are idle.
func NewClock(disorder []int64) *Clock {
	c := &Clock{watermark: record.NoTime, guard: record.NoTime}
	for _, d := range disorder {
		c.channels = append(c.channels, channel{newest: record.NoTime, watermark: record.NoTime, lateness: d})
	}
	c.find()
	return c
}

// Watermark is the task's event time.
func (c *Clock) Watermark() int64 { return c.watermark }

// Observe takes an event's time on a channel, and tells whether the task's watermark moved. An event ends idleness.
func (c *Clock) Observe(i int, time int64) bool {
	ch := &c.channels[i]
	if time <= ch.newest && !ch.idle {
		return false
	}
	woke := ch.idle
	ch.idle = false
	ch.observe(time)
	if i != c.holder && !woke {
		return false
	}
	return c.find()
}

func (ch *channel) observe(time int64) {
	if time <= ch.newest {
		return
	}
	ch.newest = time
	if ch.watermark = time - ch.lateness; ch.watermark > time { // the difference ran over the least time
		ch.watermark = record.NoTime
	}
}

// Behind tells how much older a time is than the newest of its channel; 0 if it is newer, or the first.
func (c *Clock) Behind(i int, time int64) int64 {
	if newest := c.channels[i].newest; newest > time { // record.NoTime is less than every time
		return newest - time
	}
	return 0
}

// SetIdle marks a channel as idle: it no longer holds time back.
func (c *Clock) SetIdle(i int) bool {
	c.channels[i].idle = true
	return c.find()
}

// Idle tells whether channel i is idle, AllIdle whether every channel is.
func (c *Clock) Idle(i int) bool { return c.channels[i].idle }

func (c *Clock) AllIdle() bool { return c.holder < 0 }

// Advance moves the watermark by decree: a fully idle source whose owner asked for the wall clock, or a test.
func (c *Clock) Advance(to int64) bool {
	if to <= c.watermark {
		return false
	}
	c.watermark = to
	return true
}

// AdvanceChannel moves one channel's watermark by decree, as an event would that is just new enough for it.
func (c *Clock) AdvanceChannel(i int, to int64) bool { return c.Observe(i, to+c.channels[i].lateness) }

// Guard is the watermark from which on what is in time here is in time behind every repartition topic again; it is set
// when a channel ends its idleness, and never goes back.
func (c *Clock) Guard() int64 { return c.guard }

// SetGuard raises the guard.
func (c *Clock) SetGuard(to int64) { c.guard = max(c.guard, to) }

// Channel tells a channel's newest time, its watermark, and whether it is the one that holds time back.
func (c *Clock) Channel(i int) (newest, watermark int64, holding bool) {
	return c.channels[i].newest, c.channels[i].watermark, i == c.holder
}

// find looks for the channel that holds time back, and moves the watermark up to it.
func (c *Clock) find() bool {
	c.holder = -1
	least := int64(math.MaxInt64)
	for i := range c.channels {
		if ch := &c.channels[i]; !ch.idle && (c.holder < 0 || ch.watermark < least) {
			c.holder, least = i, ch.watermark
		}
	}
	if c.holder < 0 || least <= c.watermark {
		return false
	}
	c.watermark = least
	return true
}

const clockVersion = 1

// Encode appends the clock as a progress record holds it.
func (c *Clock) Encode(b []byte) []byte {
	b = append(b, clockVersion)
	b = binary.AppendVarint(b, c.watermark)
	b = binary.AppendVarint(b, c.guard)
	b = binary.AppendUvarint(b, uint64(len(c.channels)))
	for _, ch := range c.channels {
		idle := byte(0)
		if ch.idle {
			idle = 1
		}
		b = append(binary.AppendVarint(b, ch.newest), idle)
	}
	return b
}

var errClock = errors.New("the progress record's clock is damaged or from another version")

// Restore takes up what Encode wrote. Times only go up, so that several sources of truth may be restored one after the
// other. A clock of another shape keeps the watermark and starts its channels anew.
func (c *Clock) Restore(b []byte) error {
	if len(b) == 0 || b[0] != clockVersion {
		return errClock
	}
	b = b[1:]
	watermark, n := binary.Varint(b)
	if n <= 0 {
		return errClock
	}
	b = b[n:]
	guard, n := binary.Varint(b)
	if n <= 0 {
		return errClock
	}
	b = b[n:]
	channels, n := binary.Uvarint(b)
	if n <= 0 || channels > uint64(len(b)) {
		return errClock
	}
	b = b[n:]
	same := channels == uint64(len(c.channels))
	for i := range int(channels) {
		newest, n := binary.Varint(b)
		if n <= 0 || n >= len(b) {
			return errClock
		}
		if same && newest >= c.channels[i].newest {
			// Not one by one through Observe: before the last channel is restored, the least of them means nothing.
			c.channels[i].observe(newest)
			c.channels[i].idle = b[n] == 1 // also of one that was never heard: it is what others have been told
		}
		b = b[n+1:]
	}
	c.find()
	c.Advance(watermark)
	c.SetGuard(guard)
	return nil
}
