package observe

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// The routes of an administrator: they change something, or show what is in memory. They exist where there is a token, and
// ask for it.

// maxProfile bounds profiles that take time, below the time that an answer may take.
const maxProfile = answerTimeout - 5*time.Second

func (o *Observer) administer(mux *http.ServeMux, token string) {
	if token == "" {
		return
	}
	only := func(h http.HandlerFunc) http.HandlerFunc { return authorized(token, h) }
	mux.HandleFunc("GET /v1/log-level", only(o.serveLogLevel))
	mux.HandleFunc("PUT /v1/log-level", only(o.changeLogLevel))
	mux.HandleFunc("/debug/pprof/", only(pprof.Index))
	mux.HandleFunc("/debug/pprof/symbol", only(pprof.Symbol))
	mux.HandleFunc("/debug/pprof/profile", only(bounded(pprof.Profile)))
	mux.HandleFunc("/debug/pprof/trace", only(bounded(pprof.Trace)))
}

// authorized lets a request through that carries the token. Hashes are compared, so that the time tells nothing about it.
func authorized(token string, next http.HandlerFunc) http.HandlerFunc {
	want := sha256.Sum256([]byte(token))
	return func(w http.ResponseWriter, r *http.Request) {
		got, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if sum := sha256.Sum256([]byte(got)); !bearer || subtle.ConstantTimeCompare(sum[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			newProblem(http.StatusUnauthorized, "MR5008", "send the token of http.admin_token as `Authorization: Bearer …`").write(w, r)
			return
		}
		next(w, r)
	}
}

// bounded shortens a profile that would take longer than an answer may; without a wish it takes 10 s.
func bounded(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		seconds, err := strconv.Atoi(q.Get("seconds"))
		if err != nil || seconds <= 0 {
			seconds = 10
		}
		q.Set("seconds", strconv.Itoa(min(seconds, int(maxProfile/time.Second))))
		r.URL.RawQuery, r.Form = q.Encode(), nil
		next(w, r)
	}
}

// logLevel is the level of the log, and how long one lasts that was asked for. Guarded by Observer.mu but for the level.
type logLevel struct {
	zap.AtomicLevel
	usual zapcore.Level
	until time.Time // zero: it stays
}

type logLevelDoc struct {
	Level string `json:"level"`
	For   string `json:"for,omitempty"` // asked for: how long; in answers: how much longer
}

func (o *Observer) serveLogLevel(w http.ResponseWriter, _ *http.Request) {
	o.mu.Lock()
	doc := logLevelDoc{Level: o.level.String()}
	if !o.level.until.IsZero() {
		doc.For = o.level.until.Sub(o.opt.Clock()).String()
	}
	o.mu.Unlock()
	document(w, doc)
}

// changeLogLevel takes a level, for a while or until the next change. A restart has that of the configuration again.
func (o *Observer) changeLogLevel(w http.ResponseWriter, r *http.Request) {
	level, lasts, err := readLogLevel(r)
	if err != nil {
		newProblem(http.StatusBadRequest, "MR5005", err.Error()+`; send {"level": "debug", "for": "5m"}`).write(w, r)
		return
	}
	o.mu.Lock()
	o.level.until = time.Time{}
	if lasts > 0 {
		o.level.until = o.opt.Clock().Add(lasts)
	} else {
		o.level.usual = level
	}
	o.level.SetLevel(level)
	o.mu.Unlock()
	o.log.Info("log level", zap.Stringer("level", level), zap.Duration("for", lasts))
	o.serveLogLevel(w, r)
}

func readLogLevel(r *http.Request) (level zapcore.Level, lasts time.Duration, err error) {
	var doc logLevelDoc
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil {
		return level, 0, fmt.Errorf("the body is not what is expected: %w", err)
	}
	if level, err = parseLevel(doc.Level); err != nil {
		return level, 0, err
	}
	if doc.For != "" {
		if lasts, err = time.ParseDuration(doc.For); err != nil || lasts <= 0 {
			return level, 0, fmt.Errorf("for %q: want a duration above 0", doc.For)
		}
	}
	return level, lasts, nil
}

// restoreLevel ends a level that was asked for a while.
func (o *Observer) restoreLevel(now time.Time) {
	o.mu.Lock()
	over := !o.level.until.IsZero() && !now.Before(o.level.until)
	if over {
		o.level.until = time.Time{}
		o.level.SetLevel(o.level.usual)
	}
	level := o.level.Level()
	o.mu.Unlock()
	if over {
		o.log.Info("log level", zap.Stringer("level", level))
	}
}
