package kafka

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// OAuth is where OAUTHBEARER gets its tokens: the client-credentials grant (RFC 6749, 4.4).
type OAuth struct {
	TokenURL     string // https, or http on this machine
	ClientID     string
	ClientSecret Secret
	Scopes       []string
}

const (
	tokenTimeout      = 10 * time.Second // for one answer of the token server
	tokenBackoff      = time.Second      // after the first failure; doubles
	tokenBackoffMost  = 30 * time.Second
	tokenLongest      = 24 * time.Hour // a token is never kept longer, whatever the server says
	tokenRedirectMost = 3
	tokenAnswerMost   = 1 << 20 // bytes
)

// tokenSource gets tokens and keeps them for four fifths of their life. Its method may be called from any goroutine;
// one of them asks the server and the others wait for it.
type tokenSource struct {
	oauth  OAuth
	host   string
	client *http.Client
	now    func() time.Time

	mu               sync.Mutex
	token            string
	refresh, expires time.Time
	failure          error // of the last attempt
	failures         int   // in a row
	retry            time.Time
}

func newTokenSource(o OAuth) (*tokenSource, error) {
	u, err := url.Parse(o.TokenURL)
	switch {
	case err != nil || u.Host == "":
		return nil, errors.New("the token URL is none; write it as in https://auth.example.com/oauth2/token")
	case u.User != nil:
		return nil, errors.New("the token URL holds a username; the client id and its secret have settings of their own")
	case u.Scheme != "https" && (u.Scheme != "http" || !onThisMachine(u.Hostname())):
		return nil, fmt.Errorf("the client's secret would cross the network to %s unencrypted; use an https token URL", u.Host)
	case o.ClientID == "" || o.ClientSecret.reveal() == "":
		return nil, errors.New("OAUTHBEARER needs a client id and a client secret")
	}
	// A connection a token is cheap enough, and no idle one stays behind when the process closes its clients.
	transport := &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}
	client := &http.Client{Transport: transport, Timeout: tokenTimeout, CheckRedirect: sameHost}
	return &tokenSource{oauth: o, host: u.Host, client: client, now: time.Now}, nil
}

func onThisMachine(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// sameHost keeps the secret from hosts that nobody configured.
func sameHost(request *http.Request, via []*http.Request) error {
	first := via[0].URL
	if request.URL.Host != first.Host || request.URL.Scheme != first.Scheme {
		return fmt.Errorf("it redirects to another server, %s, which would learn the client's secret; "+
			"configure that token URL if it is right", request.URL.Host)
	}
	if len(via) > tokenRedirectMost {
		return fmt.Errorf("it redirects more than %d times", tokenRedirectMost)
	}
	return nil
}

// Token returns a token that is valid now. While the token server is out of order, the old token is used to its end.
func (s *tokenSource) Token() (*sarama.AccessToken, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if now.Before(s.refresh) {
		return &sarama.AccessToken{Token: s.token}, nil
	}
	if !now.Before(s.retry) {
		s.fetch(now)
	}
	// A token without a known life serves the one login it was asked for.
	if s.failure == nil || now.Before(s.expires) {
		return &sarama.AccessToken{Token: s.token}, nil
	}
	return nil, s.failure
}

// fetch is called with mu held. After a failure the server is left alone for a while: wrong credentials, asked for by
// every reconnect, would lock the account.
func (s *tokenSource) fetch(now time.Time) {
	token, life, err := s.request()
	if err != nil {
		s.failure = fmt.Errorf("oauth token from %s: %w", s.host, err)
		s.retry = now.Add(min(tokenBackoff<<min(s.failures, 10), tokenBackoffMost))
		s.failures++
		return
	}
	s.token, s.failure, s.failures = token, nil, 0
	s.expires = now.Add(life)
	s.refresh = now.Add(life * 4 / 5)
	s.retry = time.Time{}
}

// tokenAnswer is what a token server sends (RFC 6749, 5.1 and 5.2). json.Number also takes a number in quotes, which
// some servers send.
type tokenAnswer struct {
	Token   string      `json:"access_token"`
	Type    string      `json:"token_type"`
	Expires json.Number `json:"expires_in"`
	Error   string      `json:"error"`
}

// tokenErrors are the only words of the server that go into an error: anything else might repeat what we sent.
var tokenErrors = []string{"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client",
	"unsupported_grant_type", "invalid_scope"}

func (s *tokenSource) request() (token string, life time.Duration, err error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(s.oauth.Scopes) > 0 {
		form.Set("scope", strings.Join(s.oauth.Scopes, " "))
	}
	request, err := http.NewRequest(http.MethodPost, s.oauth.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return "", 0, errors.New("the token URL cannot be used")
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	request.SetBasicAuth(url.QueryEscape(s.oauth.ClientID), url.QueryEscape(s.oauth.ClientSecret.reveal()))
	response, err := s.client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // The wrapper repeats the URL, whose query may hold a secret.
		}
		return "", 0, err
	}
	defer response.Body.Close()
	var answer tokenAnswer
	decodeErr := json.NewDecoder(io.LimitReader(response.Body, tokenAnswerMost)).Decode(&answer)
	if response.StatusCode != http.StatusOK {
		if slices.Contains(tokenErrors, answer.Error) {
			return "", 0, fmt.Errorf("the server answers %d, %s", response.StatusCode, answer.Error)
		}
		return "", 0, fmt.Errorf("the server answers %d", response.StatusCode)
	}
	if decodeErr != nil {
		return "", 0, errors.New("the answer is not the JSON of RFC 6749; is this the token URL?")
	}
	return answer.take()
}

func (a tokenAnswer) take() (token string, life time.Duration, err error) {
	unprintable := func(r rune) bool { return r <= ' ' || r > '~' }
	switch {
	case a.Token == "" || strings.ContainsFunc(a.Token, unprintable):
		return "", 0, errors.New("the answer has no usable access_token")
	case a.Type != "" && !strings.EqualFold(a.Type, "bearer"):
		return "", 0, errors.New("the token is no bearer token")
	}
	seconds, err := a.Expires.Float64()
	if err != nil || seconds <= 0 {
		return a.Token, 0, nil
	}
	return a.Token, time.Duration(min(seconds, tokenLongest.Seconds()) * float64(time.Second)), nil
}
