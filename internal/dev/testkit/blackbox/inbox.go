package blackbox

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"palmares/internal/dev/testkit/wait"
)

// Inbox is a receiver of webhooks.
type Inbox struct {
	*httptest.Server
	mu   sync.Mutex
	got  []http.Header
	hold chan struct{} // responses wait for it to be closed, if not nil
}

// NewInbox starts a receiver, which ends with the test.
func NewInbox(t testing.TB) *Inbox {
	in := &Inbox{}
	in.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not seen
		in.mu.Lock()
		in.got = append(in.got, r.Header)
		hold := in.hold
		in.mu.Unlock()
		if hold != nil {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
	}))
	t.Cleanup(in.Close)
	return in
}

// Hold lets the following responses wait until a channel is closed, or not if
// it is nil.
func (in *Inbox) Hold(until chan struct{}) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.hold = until
}

// All are the headers of the events that came so far.
func (in *Inbox) All() []http.Header {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.got)
}

// Wait waits for so many events.
func (in *Inbox) Wait(t testing.TB, n int) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("%d events have arrived", n), func() bool { return len(in.All()) >= n })
}
