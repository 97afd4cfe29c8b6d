package observe

import (
	"embed"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Pages are the texts that only the caller can make. A page whose function is nil does not exist.
type Pages struct {
	Topology func(format string) (string, error) // the plan as text, json, mermaid or dot
	Config   func() (string, error)              // the effective configuration as YAML, secrets already hidden
	// AdminToken opens the routes that change something or show what is in memory to whoever sends it. Empty: there are none.
	AdminToken string
}

// topologyFormats maps what ?format= may say to the type of the answer.
var topologyFormats = map[string]string{
	"text": plainText, "json": "application/json", "mermaid": plainText, "dot": "text/vnd.graphviz; charset=utf-8",
}

const plainText = "text/plain; charset=utf-8"

//go:embed page
var pageFiles embed.FS

// Handler answers all paths of the HTTP interface. But for the routes of AdminToken it reads only, and nothing that it
// serves holds a record or a secret.
func (o *Observer) Handler(p Pages) http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/livez", "/ping"} {
		mux.HandleFunc(path, probe(o.live))
	}
	for _, path := range []string{"/readyz", "/ready"} {
		mux.HandleFunc(path, probe(o.readiness))
	}
	mux.HandleFunc("/startupz", probe(o.startup))
	mux.Handle("/metrics", promhttp.HandlerFor(o.metrics.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 4}))
	mux.HandleFunc("/version", o.serveVersion)
	mux.HandleFunc("/v1/status", func(w http.ResponseWriter, _ *http.Request) { document(w, o.status()) })
	mux.HandleFunc("/v1/watermarks", o.serveWatermarks)
	mux.HandleFunc("/v1/restore", o.serveRestore)
	if p.Topology != nil {
		mux.HandleFunc("/v1/topology", serveTopology(p.Topology))
	}
	if p.Config != nil {
		mux.HandleFunc("/debug/config", serveConfig(p.Config))
	}
	o.administer(mux, p.AdminToken)
	mux.HandleFunc("/{$}", servePage("index.html"))
	mux.HandleFunc("/ui/app.js", servePage("app.js"))
	mux.HandleFunc("/ui/style.css", servePage("style.css"))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		newProblem(http.StatusNotFound, "MR5003", "there is nothing at this path").write(w, r)
	})
	return guard(mux)
}

// allowed lists the methods of a path.
func allowed(path string) []string {
	if path == "/v1/log-level" {
		return []string{http.MethodGet, http.MethodHead, http.MethodPut}
	}
	return []string{http.MethodGet, http.MethodHead}
}

// contentPolicy lets the page load its own script and style and ask this server, nothing else. Text that comes from
// brokers or records can therefore not run, even where the page had a mistake.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard holds for every path: methods that it knows, small requests, and headers that keep browsers from guessing.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, 1024)
		if allow := allowed(r.URL.Path); !slices.Contains(allow, r.Method) {
			h.Set("Allow", strings.Join(allow, ", "))
			newProblem(http.StatusMethodNotAllowed, "MR5004", r.Method+" is not allowed here").write(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// probe answers with ok, or with a problem that lists the checks. ?verbose lists them in any case.
func probe(run func() checks) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := run()
		if !c.ok() {
			p := newProblem(http.StatusServiceUnavailable, "MR5007", failedNames(c))
			p.Checks = c
			p.write(w, r)
			return
		}
		w.Header().Set("Content-Type", plainText)
		if r.URL.Query().Has("verbose") {
			io.WriteString(w, c.text())
		}
		io.WriteString(w, "ok\n")
	}
}

func failedNames(c checks) string {
	var names []string
	for _, x := range c {
		if !x.OK {
			names = append(names, strings.TrimSuffix(x.Name+": "+x.Note, ": "))
		}
	}
	return strings.Join(names, "; ")
}

func (o *Observer) serveVersion(w http.ResponseWriter, _ *http.Request) {
	document(w, map[string]string{
		"version": o.opt.Version, "revision": o.opt.Revision, "go_version": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
	})
}

func (o *Observer) serveWatermarks(w http.ResponseWriter, _ *http.Request) {
	now := o.opt.Clock()
	o.mu.Lock()
	docs := watermarkDocs(o.marks, now)
	o.mu.Unlock()
	document(w, map[string]any{"watermarks": docs})
}

func (o *Observer) serveRestore(w http.ResponseWriter, _ *http.Request) {
	docs, unfinished := o.restoreDocs()
	document(w, map[string]any{"restoring": unfinished, "restores": docs})
}

func serveTopology(text func(string) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		format := r.URL.Query().Get("format")
		if format == "" {
			format = "text"
		}
		kind, ok := topologyFormats[format]
		if !ok {
			newProblem(http.StatusBadRequest, "MR5005", fmt.Sprintf("format %q: want text, json, mermaid or dot", format)).write(w, r)
			return
		}
		caller(w, r, kind, func() (string, error) { return text(format) })
	}
}

func serveConfig(text func() (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { caller(w, r, plainText, text) }
}

// caller writes a text that the caller of Handler makes.
func caller(w http.ResponseWriter, r *http.Request, kind string, text func() (string, error)) {
	s, err := text()
	if err != nil {
		newProblem(http.StatusInternalServerError, codeOf(err, "MR5006"), err.Error()).write(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	io.WriteString(w, s)
}

func servePage(name string) http.HandlerFunc {
	b, err := pageFiles.ReadFile("page/" + name)
	return func(w http.ResponseWriter, r *http.Request) {
		if err != nil {
			newProblem(http.StatusInternalServerError, "MR5006", err.Error()).write(w, r)
			return
		}
		w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
		w.Write(b)
	}
}

func document(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	writeJSON(w, v)
}
