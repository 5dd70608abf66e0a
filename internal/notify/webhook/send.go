package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"palmares/ent"
)

const (
	maxAnswer   = 64 << 10
	shownAnswer = 300
)

// outcome is what came of sending something once.
type outcome struct {
	at        time.Time
	took      time.Duration
	status    int    // 0 for no answer
	answer    string // its first bytes, or why there is none
	delivered bool
	gone      bool          // the receiver wants no more
	wait      time.Duration // what the receiver asked for, with a failure
}

// send makes one attempt, and tells when it is on its way. Only 2xx says that
// it has arrived.
func (w *Webhooks) send(ctx context.Context, endpoint *ent.Endpoint, id string, body []byte, onItsWay func()) outcome {
	start := w.now()
	o := outcome{at: start}
	ctx, cancel := context.WithTimeout(ctx, w.times.attempt)
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { onItsWay() }})
	began := time.Now()
	o.status, o.answer, o.wait = w.post(ctx, endpoint, id, start, body)
	o.took = time.Since(began)
	o.delivered = o.status >= 200 && o.status < 300
	o.gone = o.status == http.StatusGone
	if o.delivered {
		o.wait = 0
	}
	w.Counts.add(o)
	return o
}

func (w *Webhooks) post(ctx context.Context, endpoint *ent.Endpoint, id string, at time.Time, body []byte) (status int, answer string, wait time.Duration) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.URL, bytes.NewReader(body))
	if err != nil {
		return 0, "the address is not valid", 0
	}
	signature, err := sign(endpoint, id, at, body)
	if err != nil {
		return 0, "the secret is not valid", 0
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "palmares-webhooks")
	r.Header["webhook-id"] = []string{id}
	r.Header["webhook-timestamp"] = []string{strconv.FormatInt(at.Unix(), 10)}
	r.Header["webhook-signature"] = []string{signature}
	response, err := w.client.Do(r)
	if err != nil {
		return 0, unreachable(err), 0
	}
	defer response.Body.Close()
	// All of it is read, so that the connection can be used again, but no more
	// than a receiver has reason to say.
	// What it said of the event, its status, stands whatever comes of the rest.
	said, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return response.StatusCode, firstBytes(withoutSecrets(endpoint, said)), retryAfter(response.Header, at)
}

// firstBytes is a beginning that can be shown and stored.
func firstBytes(said []byte) string {
	if len(said) > shownAnswer {
		said = wholeRunes(said[:shownAnswer])
	}
	text := strings.ToValidUTF8(string(said), "�")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}

// wholeRunes drops the beginning of a character at the end.
func wholeRunes(text []byte) []byte {
	for cut := 1; cut < utf8.UTFMax && cut <= len(text); cut++ {
		if tail := text[len(text)-cut:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return text[:len(text)-cut]
			}
			break
		}
	}
	return text
}

// withoutSecrets is for receivers whose errors tell all that they know.
func withoutSecrets(endpoint *ent.Endpoint, said []byte) []byte {
	for _, secret := range []string{endpoint.Secret, endpoint.FormerSecret} {
		if key := strings.TrimPrefix(secret, secretPrefix); key != "" {
			said = bytes.ReplaceAll(said, []byte(key), []byte("(secret)"))
		}
	}
	return said
}

func isTLS(err error) bool {
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert *net.OpError // which the library has no other name for
	return errors.As(err, &verification) || errors.As(err, &record) || errors.Is(err, http.ErrSchemeMismatch) ||
		errors.As(err, &alert) && alert.Op == "remote error"
}
