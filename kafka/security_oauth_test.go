package kafka

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"millrace/devbroker"
)

// tokenServer answers with what the test puts in, and counts.
type tokenServer struct {
	*httptest.Server
	asked  atomic.Int64
	answer atomic.Value // of type func(http.ResponseWriter, *http.Request)
}

func newTokenServer(t *testing.T, answer http.HandlerFunc) *tokenServer {
	t.Helper()
	s := &tokenServer{}
	s.answer.Store(answer)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		s.answer.Load().(http.HandlerFunc)(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// body answers with a fixed text.
func body(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text) // A client that has gone away fails the test by itself.
	}
}

func oauth(url string) OAuth {
	return OAuth{TokenURL: url, ClientID: "id", ClientSecret: NewSecret(canary), Scopes: []string{"kafka", "read"}}
}

// source is a token source with a clock that the test moves.
func source(t *testing.T, url string) (*tokenSource, *time.Time) {
	t.Helper()
	s, err := newTokenSource(oauth(url))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	s.now = func() time.Time { return now }
	return s, &now
}

func mustToken(t *testing.T, s *tokenSource, want string) {
	t.Helper()
	got, err := s.Token()
	if err != nil || got.Token != want {
		t.Fatalf("token %+v, %v; want %s", got, err, want)
	}
}

func TestOAuthLogin(t *testing.T) {
	server := newTokenServer(t, func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		if r.Method != http.MethodPost || id != "id" || secret != canary ||
			r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "kafka read" {
			body(http.StatusUnauthorized, `{"error":"invalid_client"}`)(w, r)
			return
		}
		body(http.StatusOK, `{"access_token":"tok","token_type":"Bearer","expires_in":300}`)(w, r)
	})
	var seen atomic.Int64
	b := startBroker(t, devbroker.Options{AcceptToken: func(token string) bool {
		if token == "tok" {
			seen.Add(1)
		}
		return token == "tok"
	}})
	s := Security{SASL: SASL{Mechanism: "OAUTHBEARER", OAuth: oauth(server.URL)}}
	c := secured(t, s)
	for range 3 {
		if err := login(t, b.Addr(), c); err != nil {
			t.Fatal(err)
		}
	}
	if server.asked.Load() != 1 || seen.Load() < 3 {
		t.Errorf("%d logins with %d tokens; want 3 at least with 1", seen.Load(), server.asked.Load())
	}
	s.SASL.OAuth.ClientSecret = NewSecret(canary + "-wrong")
	if err := login(t, b.Addr(), secured(t, s)); err == nil {
		t.Error("a wrong client secret was accepted")
	}
	server.answer.Store(body(http.StatusOK, `{"access_token":"forged"}`))
	if err := login(t, b.Addr(), secured(t, s)); err == nil {
		t.Error("a token that the broker refuses was accepted")
	}
}

func TestTokenIsRenewedBeforeItExpires(t *testing.T) {
	server := newTokenServer(t, body(http.StatusOK, `{"access_token":"a","expires_in":"100"}`))
	s, now := source(t, server.URL)
	mustToken(t, s, "a")
	server.answer.Store(body(http.StatusOK, `{"access_token":"b","expires_in":100}`))
	*now = now.Add(79 * time.Second)
	mustToken(t, s, "a")
	*now = now.Add(time.Second)
	mustToken(t, s, "b")
	if n := server.asked.Load(); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
}

func TestOldTokenServesWhileTheServerIsOutOfOrder(t *testing.T) {
	server := newTokenServer(t, body(http.StatusOK, `{"access_token":"a","expires_in":100}`))
	s, now := source(t, server.URL)
	mustToken(t, s, "a")
	server.answer.Store(body(http.StatusServiceUnavailable, ""))
	*now = now.Add(85 * time.Second)
	mustToken(t, s, "a")
	*now = now.Add(16 * time.Second)
	if token, err := s.Token(); err == nil || !strings.Contains(err.Error(), "the server answers 503") {
		t.Errorf("after its end: %v, %v", token, err)
	}
	server.answer.Store(body(http.StatusOK, `{"access_token":"b","expires_in":100}`))
	*now = now.Add(tokenBackoffMost)
	mustToken(t, s, "b")
}

func TestFailuresBackOff(t *testing.T) {
	server := newTokenServer(t, body(http.StatusUnauthorized, `{"error":"invalid_client"}`))
	s, now := source(t, server.URL)
	// One minute of a reconnect each 100 ms: at 0, 1, 3, 7, 15, 31 s, and from there each 30 s.
	for range 600 {
		_, err := s.Token()
		if err == nil || !strings.Contains(err.Error(), "401, invalid_client") {
			t.Fatalf("error %v", err)
		}
		*now = now.Add(100 * time.Millisecond)
	}
	if n := server.asked.Load(); n != 6 {
		t.Errorf("asked %d times within a minute, want 6", n)
	}
}

func TestTokenWithoutALifeIsUsedOnce(t *testing.T) {
	server := newTokenServer(t, body(http.StatusOK, `{"access_token":"a"}`))
	s, _ := source(t, server.URL)
	mustToken(t, s, "a")
	mustToken(t, s, "a")
	if n := server.asked.Load(); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
}

func TestConcurrentLoginsShareOneToken(t *testing.T) {
	server := newTokenServer(t, body(http.StatusOK, `{"access_token":"a","expires_in":100}`))
	s, _ := source(t, server.URL)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if token, err := s.Token(); err != nil || token.Token != "a" {
				t.Errorf("token %v, %v", token, err)
			}
		})
	}
	all.Wait()
	if n := server.asked.Load(); n != 1 {
		t.Errorf("asked %d times, want 1", n)
	}
}

func TestSecretDoesNotFollowARedirectToAnotherHost(t *testing.T) {
	thief := newTokenServer(t, body(http.StatusOK, `{"access_token":"stolen","expires_in":100}`))
	server := newTokenServer(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	})
	s, _ := source(t, server.URL)
	_, err := s.Token()
	if err == nil || !strings.Contains(err.Error(), "redirects to another server") || thief.asked.Load() != 0 {
		t.Errorf("error %v; the other server was asked %d times", err, thief.asked.Load())
	}
}

func TestRedirectOnTheSameHostIsFollowedButNotForEver(t *testing.T) {
	server := newTokenServer(t, nil)
	server.answer.Store(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			body(http.StatusOK, `{"access_token":"a","expires_in":100}`)(w, r)
			return
		}
		http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
	}))
	s, now := source(t, server.URL+"/token")
	mustToken(t, s, "a")
	server.answer.Store(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"x", http.StatusTemporaryRedirect)
	}))
	*now = now.Add(time.Hour)
	if _, err := s.Token(); err == nil || !strings.Contains(err.Error(), "more than 3 times") {
		t.Errorf("endless redirects: %v", err)
	}
}

func TestUnusableTokenAnswersAreErrorsWithoutSecrets(t *testing.T) {
	for _, c := range []struct {
		status     int
		text, want string
	}{
		{200, `{}`, "no usable access_token"},
		{200, `{"access_token":"a\u0001auth=x"}`, "no usable access_token"},
		{200, `{"access_token":"a b"}`, "no usable access_token"},
		{200, `{"access_token":"a","token_type":"mac"}`, "no bearer token"},
		{200, `<html>` + canary, "not the JSON"},
		{400, `{"error":"` + canary + `"}`, "answers 400"},
		{400, `{"error":"invalid_scope","error_description":"` + canary + `"}`, "answers 400, invalid_scope"},
		{500, canary, "answers 500"},
	} {
		server := newTokenServer(t, body(c.status, c.text))
		s, _ := source(t, server.URL)
		_, err := s.Token()
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "oauth token from ") {
			t.Errorf("%d %s: %v; want an error with %q", c.status, c.text, err, c.want)
		} else if strings.Contains(err.Error(), canary) {
			t.Errorf("%d %s: the secret is in the error: %v", c.status, c.text, err)
		}
	}
}

func TestUnreachableTokenServerDoesNotShowTheURLsQuery(t *testing.T) {
	server := newTokenServer(t, body(http.StatusOK, ""))
	server.Close()
	s, _ := source(t, server.URL+"/token?key="+canary)
	if _, err := s.Token(); err == nil || strings.Contains(err.Error(), canary) {
		t.Errorf("error: %v", err)
	}
}

func TestTokenURLsThatAreRefused(t *testing.T) {
	for url, want := range map[string]string{
		"":                            "the token URL is none",
		"auth.example.com/token":      "the token URL is none",
		"http://auth.example.com/t":   "unencrypted",
		"http://127.0.0.1.evil.com/t": "unencrypted",
		"ftp://localhost/t":           "unencrypted",
		fmt.Sprintf("https://u:%s@auth.example.com/t", canary): "holds a username",
	} {
		_, err := newTokenSource(oauth(url))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v; want an error with %q", url, err, want)
		}
	}
	for _, url := range []string{"https://auth.example.com/t", "http://localhost:1/t", "http://127.0.0.1/t", "http://[::1]:1/t"} {
		if _, err := newTokenSource(oauth(url)); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	incomplete := oauth("https://auth.example.com/t")
	incomplete.ClientSecret = Secret{}
	if _, err := newTokenSource(incomplete); err == nil {
		t.Error("no client secret was accepted")
	}
}
