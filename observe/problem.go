package observe

import (
	"encoding/json"
	"net/http"
	"strings"
)

// problem is an error answer as RFC 9457 has it, with our code.
type problem struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail,omitempty"`
	Instance string `json:"instance,omitempty"` // the path that was asked for
	Code     string `json:"code"`
	Checks   checks `json:"checks,omitempty"` // of a failed probe
}

// newProblem fills in the title that codes.go gives to code.
func newProblem(status int, code, detail string) problem {
	p := problem{Type: "urn:millrace:error:" + strings.ToLower(code), Status: status, Detail: clean(detail), Code: code}
	for _, c := range Codes {
		if c.ID == code {
			p.Title = c.Title
		}
	}
	return p
}

func (p problem) write(w http.ResponseWriter, r *http.Request) {
	p.Instance = clean(r.URL.Path)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	writeJSON(w, p)
}

// writeJSON writes v indented, since people read it with curl. A failed write means that the client has gone away,
// and there is nobody left to tell.
func writeJSON(w http.ResponseWriter, v any) {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v)
}
