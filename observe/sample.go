package observe

import (
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

const (
	sampleEvery = 30 * time.Second // how often equal warnings are repeated
	sampleKinds = 256              // how many different ones are told apart
)

// sampler lets the first of equal warnings through and counts the rest, so that a broken broker does not fill the disk
// with its own error text. Guarded by Observer.mu.
type sampler struct {
	seen map[string]*sampled
}

type sampled struct {
	at     time.Time // when it was last written
	held   int64     // not written since
	level  zapcore.Level
	msg    string
	fields []zap.Field // of the last one held
}

// warn writes a line at warn or error level unless an equal one was written a short time ago. Two lines are equal when
// code, message, task and error text are, numbers in the text left out: offsets and attempts differ in what is the same trouble.
func (o *Observer) warn(level zapcore.Level, code, msg string, err error, fields ...zap.Field) {
	fields = o.trouble(code, msg, err, fields)
	key := code + "|" + msg
	if err != nil {
		key += "|" + withoutDigits(err.Error())
	}
	for _, f := range fields {
		if f.Key == "task" {
			key += "|" + f.String // the same error in another task is news
		}
	}
	now := o.opt.Clock()
	o.mu.Lock()
	s := o.samples.seen[key]
	if s == nil {
		if len(o.samples.seen) >= sampleKinds {
			// Whoever makes that many different errors has none worth counting: start afresh, memory stays bounded.
			clear(o.samples.seen)
		}
		s = &sampled{level: level, msg: msg}
		o.samples.seen[key] = s
	}
	if !s.at.IsZero() && now.Sub(s.at) < sampleEvery {
		s.held++
		s.fields = fields
		o.mu.Unlock()
		return
	}
	held := s.held
	s.at, s.held, s.fields = now, 0, nil
	o.mu.Unlock()
	o.write(level, msg, held, fields)
}

// trouble remembers an error for the status page and adds its code and text to the fields of its line.
func (o *Observer) trouble(code, msg string, err error, fields []zap.Field) []zap.Field {
	last := lastError{Code: code, Message: clean(msg), At: o.opt.Clock()}
	fields = append([]zap.Field{zap.String("code", code)}, fields...)
	if err != nil {
		last.Error = clean(err.Error())
		fields = append(fields, zap.Error(err))
	}
	o.mu.Lock()
	o.last = last
	o.mu.Unlock()
	return fields
}

// flushSamples writes what was held back long enough, so that the last of a series is not silent for ever.
func (o *Observer) flushSamples(now time.Time) {
	var due []sampled
	o.mu.Lock()
	for key, s := range o.samples.seen {
		if now.Sub(s.at) < sampleEvery {
			continue
		}
		if s.held == 0 {
			delete(o.samples.seen, key)
			continue
		}
		due = append(due, *s)
		s.at, s.held, s.fields = now, 0, nil
	}
	o.mu.Unlock()
	for _, s := range due {
		// The line shows the last one held; `repeated` counts those before it.
		o.write(s.level, s.msg, s.held-1, s.fields)
	}
}

func (o *Observer) write(level zapcore.Level, msg string, repeated int64, fields []zap.Field) {
	if repeated > 0 {
		fields = append(fields, zap.Int64("repeated", repeated))
	}
	if ce := o.log.Check(level, msg); ce != nil {
		ce.Write(fields...)
	}
}

func withoutDigits(s string) string {
	if len(s) > maxValue {
		s = s[:maxValue]
	}
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, s)
}
