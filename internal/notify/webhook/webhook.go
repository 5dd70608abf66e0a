// Package webhook sends the journal's events to those who asked for them, as
// the Standard Webhooks specification says. An endpoint has a position in the
// journal: what comes after it is sent in order, what fails is tried again at
// set times. River wakes it up, in the transaction of the release; the journal
// remembers what there is to send, so that nothing is lost or made up.
package webhook

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
)

// Config is what sending needs.
type Config struct {
	PublicURL   string
	ServiceName string
	Store       *store.Store
	Mail        *mail.Mailer
	Log         *slog.Logger
	// Loopback lets endpoints be on this machine, over plain http: for a
	// server that only this machine reaches itself.
	Loopback bool
	TLS      *tls.Config // nil for the system's authorities
}

// Webhooks keeps endpoints and sends to them.
type Webhooks struct {
	Config
	client   *http.Client
	resolver *net.Resolver // nil for the system's
	now      func() time.Time
	times    times
	workers  int        // of each queue
	reading  sync.Mutex // of events: texts may be long, and are in memory several times while they become a body
	busy     sync.Map   // endpoints that this process is at work for
	tests    testCounter

	Counts Counts
}

// New is ready to send; see Run.
func New(cfg Config) *Webhooks {
	w := &Webhooks{Config: cfg, now: time.Now, times: shipped, workers: workers}
	w.client = w.newClient()
	return w
}

// Tidy forgets attempts whose time is over, some at a time: whoever writes
// meanwhile must not wait long.
func (w *Webhooks) Tidy(ctx context.Context) error {
	for {
		n, err := w.forgetAttempts(ctx, w.now().Add(-attemptsKept), 5_000)
		if err != nil || n == 0 {
			return err
		}
	}
}
