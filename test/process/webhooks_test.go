package process_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palmares/ent/endpoint"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// inbox receives webhooks.
type inbox struct {
	*httptest.Server
	silent atomic.Bool // whether it does not respond
	mu     sync.Mutex
	got    []http.Header
}

// newInbox starts a receiver, which is closed when the test ends.
func newInbox(t testing.TB) *inbox {
	in := &inbox{}
	in.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice a closed connection
		silent := in.silent.Load()
		in.mu.Lock()
		in.got = append(in.got, r.Header)
		in.mu.Unlock()
		if silent {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(in.Close)
	return in
}

// all returns the headers of the events received so far.
func (in *inbox) all() []http.Header {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.got)
}

// wait waits until n events have arrived.
func (in *inbox) wait(t testing.TB, n int) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("%d events have arrived", n), func() bool { return len(in.all()) >= n })
}

// lastSent returns when each event was last sent, by ID.
func lastSent(t *testing.T, got []http.Header) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, header := range got {
		at := check.Try(strconv.Atoi(header.Get("webhook-timestamp"))).OK(t)
		id := header.Get("webhook-id")
		all[id] = max(all[id], at)
	}
	return all
}

// expireLeases expires the leases of a dead server, so that the test does not
// have to wait for it.
func expireLeases(t *testing.T, db *store.Store) {
	t.Helper()
	n, err := db.Write.Endpoint.Update().Where(endpoint.LeasedByNEQ("")).SetLeasedUntil(time.Now().UTC().Add(-time.Minute)).Save(t.Context())
	check.MustTrue(t, err == nil && n != 0, "got %d leased endpoints, %v, want at least 1", n, err)
}

// If a server dies during deliveries, the next one sends the same events again,
// with the same IDs and new timestamps.
func TestKillDuringDelivery(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		t.Parallel()
		in := newInbox(t)
		blackbox.MustRun(t, blackbox.Command(t, cfg, "accounts", "create", "pro@example.com", "--plan", "pro"))
		blackbox.MustRun(t, blackbox.Command(t, cfg, "import", blackbox.SynthFile(t, synth.Options{Tools: 40, Seed: 1})))
		secret := blackbox.MustRun(t, blackbox.Command(t, cfg, "webhooks", "add", "pro@example.com", in.URL, "--events", "catalog.published,tool.updated,price.changed"))
		check.True(t, strings.HasPrefix(secret.Out, "whsec_") && !strings.Contains(secret.Err, "whsec_"), "got %q and %q, want the secret on standard output only", secret.Out, secret.Err)
		in.silent.Store(true)
		first := blackbox.Serve(t, cfg)
		blackbox.MustRun(t, blackbox.Command(t, cfg, "import", blackbox.SynthFile(t, synth.Options{Tools: 40, Seed: 1, Revision: 3})))
		in.wait(t, 2)
		_ = first.Cmd.Process.Kill()
		<-first.Done
		cut := lastSent(t, in.all())
		last := slices.Max(slices.Collect(maps.Values(cut)))
		wait.Until(t, "the next second has started, so that timestamps differ", func() bool { return time.Now().Unix() > int64(last) })

		expireLeases(t, testkit.Open(t, cfg))
		in.silent.Store(false)
		second := blackbox.Serve(t, cfg)
		wait.Until(t, "all events are sent again with new timestamps", func() bool {
			now := lastSent(t, in.all())
			for id, was := range cut {
				if now[id] <= was {
					return false
				}
			}
			return true
		})
		for _, s := range []*blackbox.Server{first, second} {
			check.True(t, !strings.Contains(s.Log.String(), "whsec_"), "got a secret in the log, want none")
		}
	})
}
