package observe

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"
)

// lineCore is the zap core of this package: it cleans every value, encodes the line in one of the two formats and
// hands it to the screen in one write.
type lineCore struct {
	zapcore.LevelEnabler
	encode func(zapcore.Entry, []zap.Field) (*buffer.Buffer, error)
	fixed  []zap.Field
	out    *screen
}

func (c *lineCore) With(fields []zap.Field) zapcore.Core {
	next := *c
	next.fixed = append(append([]zap.Field(nil), c.fixed...), fields...)
	return &next
}

func (c *lineCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c *lineCore) Write(e zapcore.Entry, fields []zap.Field) error {
	e.Message = clean(e.Message)
	all := make([]zap.Field, 0, len(c.fixed)+len(fields))
	for _, f := range c.fixed {
		all = append(all, cleanField(f))
	}
	for _, f := range fields {
		all = append(all, cleanField(f))
	}
	b, err := c.encode(e, all)
	if err != nil {
		return err
	}
	_, err = c.out.Write(b.Bytes())
	b.Free()
	return err
}

// Sync does nothing: every line is written at once.
func (c *lineCore) Sync() error { return nil }

// parseLevel reads the name of a level that a log may have.
func parseLevel(name string) (zapcore.Level, error) {
	level, err := zapcore.ParseLevel(name)
	if err != nil || name == "" || level > zapcore.ErrorLevel {
		return level, fmt.Errorf("log level %q: want debug, info, warn or error", name)
	}
	return level, nil
}

// newLogger builds the logger for opt. JSON lines carry application_id and instance each, since they are mixed with
// those of other instances; console lines belong to one process and say it once, when it starts.
func newLogger(opt Options, level zapcore.LevelEnabler, out *screen) (*zap.Logger, error) {
	core := &lineCore{LevelEnabler: level, out: out}
	switch opt.LogFormat {
	case "", "console":
		core.encode = func(e zapcore.Entry, f []zap.Field) (*buffer.Buffer, error) { return consoleEncoder(e, f), nil }
	case "json":
		core.encode = zapcore.NewJSONEncoder(zapcore.EncoderConfig{
			TimeKey: "time", LevelKey: "level", MessageKey: "msg",
			EncodeTime:     func(t time.Time, p zapcore.PrimitiveArrayEncoder) { p.AppendString(t.UTC().Format(timeForm)) },
			EncodeLevel:    zapcore.LowercaseLevelEncoder,
			EncodeDuration: zapcore.StringDurationEncoder,
		}).EncodeEntry
		core.fixed = []zap.Field{zap.String("application_id", opt.ApplicationID), zap.String("instance", opt.Instance)}
	default:
		return nil, fmt.Errorf("log format %q: want console or json", opt.LogFormat)
	}
	return zap.New(core, zap.WithClock(zapClock(opt.Clock))), nil
}

// timeForm is how times are written in JSON: RFC 3339 with milliseconds, in UTC.
const timeForm = "2006-01-02T15:04:05.000Z07:00"

// zapClock gives zap our clock, so that a test's lines carry a test's time.
type zapClock func() time.Time

func (c zapClock) Now() time.Time                         { return c() }
func (c zapClock) NewTicker(d time.Duration) *time.Ticker { return time.NewTicker(d) }

// payloadFields are names under which a caller may pass parts of a record. They may hold personal data, so that above
// debug only their length is logged.
var payloadFields = map[string]bool{
	"key": true, "value": true, "record_key": true, "record_value": true, "headers": true, "payload": true,
}

// pairs turns alternating names and values into fields.
func (o *Observer) pairs(kv []any) []zap.Field {
	fields := make([]zap.Field, 0, len(kv)/2+1)
	for i := 0; i < len(kv); i += 2 {
		name := fmt.Sprint(kv[i])
		if i+1 == len(kv) {
			return append(fields, zap.String("detail", name))
		}
		fields = append(fields, o.pair(name, kv[i+1]))
	}
	return fields
}

func (o *Observer) pair(name string, value any) zap.Field {
	if payloadFields[name] && !o.log.Core().Enabled(zapcore.DebugLevel) {
		return zap.String(name, fmt.Sprintf("(%d bytes)", len(text(value))))
	}
	switch v := value.(type) {
	case int:
		return zap.Int64(name, int64(v))
	case int32:
		return zap.Int64(name, int64(v))
	case int64:
		return zap.Int64(name, v)
	case bool:
		return zap.Bool(name, v)
	case time.Duration:
		return zap.Duration(name, short(v))
	}
	return zap.String(name, text(value))
}

// text prints a value by its own String or Error method, so that a type that hides a secret stays hidden.
func text(value any) string {
	if b, ok := value.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(value)
}
