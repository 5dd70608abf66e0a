package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"palmares/ent"
	"palmares/internal/core/egress"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
)

const (
	maxURL       = 2_000
	maxResponse  = 64 << 10
	shownBytes   = 300 // of a response
	secretPrefix = "whsec_"
	// maxConnections limits how many connections an attempt tries. Over HTTP/2, a receiver
	// can leave each one in such a way that the request may be sent on another. All idle
	// connections may be outdated, so there must be more.
	maxConnections = maxPending + 2
	// rotationPeriod is how long events are also signed with the previous secret.
	rotationPeriod = 24 * time.Hour
)

// outcome is the result of one attempt.
type outcome struct {
	at       time.Time
	took     time.Duration
	status   int           // 0 without a response
	response string        // first bytes of the response, or why there is none
	wait     time.Duration // Retry-After of a failed attempt
}

func (o outcome) delivered() bool { return o.status >= 200 && o.status < 300 }

// gone reports whether the receiver wants no more events.
func (o outcome) gone() bool { return o.status == http.StatusGone }

// post makes one attempt and calls written when the request is written.
func (w *Webhooks) post(ctx context.Context, endpoint *ent.Endpoint, id string, body []byte, written func()) outcome {
	o := outcome{at: w.now()}
	ctx, cancel := context.WithTimeout(ctx, w.timing.attempt)
	defer cancel()
	connections := 0
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) {
			if connections++; connections > maxConnections {
				cancel()
			}
		},
		WroteRequest: func(httptrace.WroteRequestInfo) { written() },
	})
	start := time.Now()
	o.status, o.response, o.wait = w.request(ctx, endpoint, id, o.at, body)
	o.took = time.Since(start)
	if o.delivered() {
		o.wait = 0
	}
	w.Counts.add(o)
	return o
}

func (w *Webhooks) request(ctx context.Context, endpoint *ent.Endpoint, id string, at time.Time, body []byte) (status int, result string, wait time.Duration) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.URL, bytes.NewReader(body))
	if err != nil {
		return 0, string(invalidURL), 0
	}
	signature, err := sign(endpoint, id, at, body)
	if err != nil {
		return 0, string(invalidSecret), 0
	}
	for _, h := range headers(id, at) {
		r.Header[h.Name] = []string{h.Value}
	}
	r.Header[signatureHeader] = []string{signature}
	response, err := w.transport.RoundTrip(r) // unlike a Client, it ignores redirects, even to invalid URLs
	if err != nil {
		return 0, string(explain(err)), 0
	}
	defer response.Body.Close()
	var content []byte
	if response.StatusCode != http.StatusSwitchingProtocols { // after which ctx does not end reading
		// Reading the body to its end lets the connection be reused. An error does
		// not matter, because the status has already arrived.
		content, _ = io.ReadAll(io.LimitReader(response.Body, maxResponse))
	}
	return response.StatusCode, firstBytes(withoutSecrets(endpoint, content)), retryAfter(response.Header, at)
}

// Header is a header of a request.
type Header struct{ Name, Value string }

const signatureHeader = "webhook-signature"

// headers returns the headers of a request that do not depend on a secret.
func headers(id string, at time.Time) []Header {
	return []Header{
		{"Content-Type", "application/json"}, {"User-Agent", "palmares-webhooks"},
		{"webhook-id", id}, {"webhook-timestamp", strconv.FormatInt(at.Unix(), 10)},
	}
}

// firstBytes returns the start of a response, safe to display and to store.
func firstBytes(response []byte) string {
	end := min(len(response), shownBytes)
	for end < len(response) && end > shownBytes-utf8.UTFMax && !utf8.RuneStart(response[end]) {
		end-- // do not cut a character in two
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(response[:end]), "�"))
}

// withoutSecrets removes the endpoint's secrets, which the error pages of some
// receivers include.
func withoutSecrets(endpoint *ent.Endpoint, response []byte) []byte {
	for _, secret := range []string{endpoint.Secret, endpoint.FormerSecret} {
		if key := strings.TrimPrefix(secret, secretPrefix); key != "" {
			response = bytes.ReplaceAll(response, []byte(key), []byte("(secret)"))
		}
	}
	return response
}

const (
	invalidURL    lang.Message = "the URL is not valid"
	invalidSecret lang.Message = "the secret is not valid"
)

// explain describes why there was no response. The English text is stored, and pages
// translate it.
func explain(err error) lang.Message {
	var timeout net.Error
	var dns *net.DNSError
	switch {
	case errors.Is(err, egress.ErrPrivate):
		return "blocked: the host name resolves to a private network address"
	case errors.As(err, &dns):
		return "the host name could not be resolved"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "the request timed out"
	case isTLS(err):
		return "the TLS certificate is not valid or the handshake failed"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, context.Canceled): // by maxConnections
		return "the connection was closed before a response arrived"
	}
	return "the connection failed"
}

func isTLS(err error) bool {
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert *net.OpError // the only sign of an alert from the other side
	return errors.As(err, &verification) || errors.As(err, &record) || errors.Is(err, http.ErrSchemeMismatch) ||
		errors.As(err, &alert) && alert.Op == "remote error"
}

// newSecret returns a secret that receivers verify signatures with.
func newSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// sign signs with the secret and, for 24 hours after a rotation, the previous one.
func sign(endpoint *ent.Endpoint, id string, at time.Time, body []byte) (string, error) {
	signature, err := signWith(endpoint.Secret, id, at, body)
	if err != nil || endpoint.FormerUntil == nil || !at.Before(*endpoint.FormerUntil) {
		return signature, err
	}
	former, err := signWith(endpoint.FormerSecret, id, at, body)
	return signature + " " + former, err
}

func signWith(secret, id string, at time.Time, body []byte) (string, error) {
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return "", err
	}
	return hook.Sign(id, at, body)
}

var (
	errInvalidURL     = problem.New(problem.BadInput, "The URL must have the form https://host/path.").For("url")
	errNotHTTPS       = problem.New(problem.BadInput, "The URL must start with https://.").For("url")
	errPassword       = problem.New(problem.BadInput, "The URL must not contain a user name or password. Verify the signature instead.").For("url")
	errPrivateAddress = problem.New(problem.BadInput, "The URL must not point to a private network.").For("url")
)

// urlErrors are the messages for URLs that the policy does not allow.
var urlErrors = map[error]error{
	egress.ErrURL: errInvalidURL, egress.ErrUser: errPassword, egress.ErrNotHTTPS: errNotHTTPS, egress.ErrPrivate: errPrivateAddress,
}

// checkURL validates and normalizes an endpoint's URL.
func (w *Webhooks) checkURL(raw string) (string, error) {
	if len(raw) > maxURL {
		return "", errInvalidURL
	}
	u, err := w.policy().CheckURL(raw)
	if err != nil {
		return "", urlErrors[err]
	}
	return u.String(), nil
}

// policy says which receivers may be reached.
func (w *Webhooks) policy() egress.Policy { return egress.Policy{Loopback: w.Loopback} }

// Transport sends requests. It is an http.Transport, except in tests.
type Transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

// newTransport returns a transport that uses no proxy and connects only to public
// addresses, no matter what a host name resolves to.
func (w *Webhooks) newTransport() Transport {
	return &http.Transport{
		DialContext:            egress.Dialer(w.policy, w.resolver).DialContext,
		TLSHandshakeTimeout:    5 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // a small response could decompress to a huge one
		MaxIdleConnsPerHost:    maxPending,
		MaxIdleConns:           1_000,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 32 << 10,
		HTTP2: &http.HTTP2Config{
			// Pings detect connections that died without being closed, and the timeout
			// of writes detects receivers that send but do not read.
			SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second, WriteByteTimeout: w.timing.attempt,
			// By default, receivers may send 4 MB before the first byte is read.
			MaxReceiveBufferPerStream: maxResponse, MaxReceiveBufferPerConnection: maxPending * maxResponse,
		},
	}
}
