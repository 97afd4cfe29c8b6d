package devbroker

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// speakOAuth adds the mechanism that kfake does not know. It answers the two SASL requests itself; a client that never
// logs in is not kept out, so tests look at which tokens came.
func (b *Broker) speakOAuth(accept func(token string) bool) {
	b.cluster.ControlKey(int16(kmsg.SASLHandshake), func(request kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		handshake := request.(*kmsg.SASLHandshakeRequest)
		response := handshake.ResponseKind().(*kmsg.SASLHandshakeResponse)
		response.SupportedMechanisms = []string{"OAUTHBEARER"}
		if handshake.Mechanism != "OAUTHBEARER" {
			response.ErrorCode = kerr.UnsupportedSaslMechanism.Code
		}
		return response, nil, true
	})
	b.cluster.ControlKey(int16(kmsg.SASLAuthenticate), func(request kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		authenticate := request.(*kmsg.SASLAuthenticateRequest)
		response := authenticate.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		token, ok := bearerToken(authenticate.SASLAuthBytes)
		if !ok || !accept(token) {
			response.ErrorCode = kerr.SaslAuthenticationFailed.Code
			response.ErrorMessage = kmsg.StringPtr("the bearer token is not accepted")
		}
		return response, nil, true
	})
}

// bearerToken takes the token out of a client's first message (RFC 7628): fields that end with byte 1.
func bearerToken(message []byte) (string, bool) {
	for _, field := range bytes.Split(message, []byte{1}) {
		if token, ok := bytes.CutPrefix(field, []byte("auth=Bearer ")); ok {
			return string(token), true
		}
	}
	return "", false
}
