package graphql_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/client"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
	"palmares/internal/transport/graphql"
)

// accountServer serves streams and identifies callers like the real server.
type accountServer struct {
	*streamServer
	accounts *auth.Accounts
	checks   atomic.Int64
	upgrades atomic.Int64 // upgrades that checks have found
}

func newAccountServer(t *testing.T, s *store.Store, config graphql.StreamConfig) *accountServer {
	t.Helper()
	keyring := auth.NewKeyring(s, slog.New(slog.DiscardHandler), auth.Rules{})
	l := &accountServer{streamServer: &streamServer{executor: newExecutor(s), store: s}, accounts: auth.NewAccounts(s)}
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	config.Network = func(r *http.Request) string { return client.Network(client.Address(r, loopback)) }
	config.Recheck = func(ctx context.Context, caller auth.Caller) (auth.Caller, error) {
		now, err := keyring.Recheck(ctx, caller)
		if now.Plan.Terms().Streams > caller.Plan.Terms().Streams {
			l.upgrades.Add(1)
		}
		l.checks.Add(1)
		return now, err
	}
	l.Handler = newStreamHandler(l.executor, config)
	l.server = httptest.NewServer(keyring.Identify(l.Handler))
	t.Cleanup(l.server.Close)
	t.Cleanup(l.Handler.Close)
	return l
}

// account creates an account and as many keys for it as its plan allows.
func (l *accountServer) account(t *testing.T, email string, plan auth.Plan) (keys []string) {
	t.Helper()
	acc, err := l.accounts.Create(t.Context(), email, plan)
	check.OK(t, err)
	for i := range plan.Terms().Keys {
		key, _, err := l.accounts.CreateKey(t.Context(), acc, fmt.Sprint(i))
		check.OK(t, err)
		keys = append(keys, key)
	}
	return keys
}

// openAs opens a stream from an address or with a key.
func (l *accountServer) openAs(t *testing.T, caller string) *stream {
	t.Helper()
	if strings.HasPrefix(caller, "pal_") {
		return l.open(t, "Authorization", "Bearer "+caller)
	}
	return l.open(t, "X-Forwarded-For", caller)
}

func wantStreamRejected(t *testing.T, s *stream, retryAfter, message string) {
	t.Helper()
	check.Must(t, s.StatusCode, 429)
	body := strings.Join(collect(s), "")
	if s.Header.Get("Retry-After") != retryAfter || !strings.Contains(body, `"code":"TOO_MANY_REQUESTS"`) || !strings.Contains(body, message) {
		t.Errorf("got Retry-After %q and %s, want %s and %s", s.Header.Get("Retry-After"), body, retryAfter, message)
	}
}

func TestStreamsPerCaller(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		l := newAccountServer(t, s, graphql.StreamConfig{})
		developer, pro := l.account(t, "developer@example.com", auth.Developer), l.account(t, "pro@example.com", auth.Pro)
		another := l.account(t, "another@example.com", auth.Developer)
		open := 0
		for _, c := range []struct {
			name    string
			callers []string // counted as one
			limit   int
			other   string
			message string
		}{
			{"anonymous", []string{"192.0.2.1"}, 5, "192.0.2.2", "without an API key, at most 5 may be open"},
			{"IPv6", []string{"2001:db8::1", "2001:db8::2:0:0:3"}, 5, "2001:db8:0:1::1", "without an API key, at most 5 may be open"},
			{"developer", developer, 20, another[0], "your plan allows at most 20"},
			{"pro", pro, 100, another[1], "your plan allows at most 100"},
		} {
			var first *stream
			for i := range c.limit {
				one := l.openAs(t, c.callers[i%len(c.callers)])
				check.Must(t, one.StatusCode, 200, "%s, stream %d", c.name, i+1)
				if first == nil {
					first = one
				}
			}
			for _, caller := range c.callers {
				wantStreamRejected(t, l.openAs(t, caller), "60", c.message)
			}
			check.Equal(t, l.openAs(t, c.other).StatusCode, 200, "%s, another caller", c.name)
			open += c.limit + 1
			expect(t, "open", l.OpenStreams(), open)
			first.disconnect()
			wait.Until(t, "an ended stream is no longer counted", func() bool { return l.OpenStreams() == open-1 })
			expect(t, "again", l.openAs(t, c.callers[0]).StatusCode, 200)
		}
		// The whole server has a limit too.
		l.MaxStreams = l.OpenStreams()
		wantStreamRejected(t, l.openAs(t, "192.0.2.3"), "30", "The server has too many open streams")
		l.Handler.Close()
		wantStreamRejected(t, l.openAs(t, "192.0.2.3"), "5", "The server is restarting.")
	})
}

func TestStreamsEndWithTheirKey(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		l := newAccountServer(t, s, graphql.StreamConfig{CheckInterval: 50 * time.Millisecond})
		l.publish(t)
		revoked, deleted := l.account(t, "revoked@example.com", auth.Pro), l.account(t, "deleted@example.com", auth.Developer)
		ended, upgraded := l.account(t, "ended@example.com", auth.Pro), l.account(t, "upgraded@example.com", auth.Developer)
		continuing := []*stream{l.openAs(t, revoked[1]), l.openAs(t, upgraded[0]), l.openAs(t, "192.0.2.1")}
		find := func(email string) *ent.Account {
			t.Helper()
			acc, err := l.accounts.Find(t.Context(), email)
			check.OK(t, err)
			return acc
		}

		one, two := l.openAs(t, revoked[0]), l.openAs(t, revoked[0])
		check.OK(t, l.accounts.Revoke(t.Context(), revoked[0]))
		one.waitForEnd(t)
		two.waitForEnd(t)
		expect(t, "with a revoked key", l.openAs(t, revoked[0]).StatusCode, 401)

		one = l.openAs(t, deleted[0])
		check.OK(t, l.accounts.Delete(t.Context(), find("deleted@example.com")))
		one.waitForEnd(t)
		expect(t, "with a deleted account", l.openAs(t, deleted[0]).StatusCode, 401)

		var many []*stream
		for range auth.Developer.Terms().Streams + 1 {
			many = append(many, l.openAs(t, ended[0]))
		}
		check.OK(t, l.accounts.SetPlan(t.Context(), find("ended@example.com"), auth.Developer))
		for _, one := range many {
			one.waitForEnd(t)
		}
		for range auth.Developer.Terms().Streams {
			expect(t, "under the new plan", l.openAs(t, ended[0]).StatusCode, 200)
		}
		wantStreamRejected(t, l.openAs(t, ended[0]), "60", "your plan allows at most 20")

		// A larger plan ends no stream.
		check.OK(t, l.accounts.SetPlan(t.Context(), find("upgraded@example.com"), auth.Pro))
		wait.Until(t, "the larger plan is noticed", func() bool { return l.upgrades.Load() > 0 })
		until := l.checks.Load() + 200
		wait.Until(t, "callers are checked again", func() bool { return l.checks.Load() > until })
		l.publish(t)
		l.executor.AnnounceRelease()
		for _, one := range continuing {
			check.Contains(t, one.events(t, 1)[0], `"release":2}`, "want release 2")
		}
	})
}

// A stream ends after its maximum duration with a hint to reconnect, and the next
// one continues without a gap.
func TestStreamsEndAfterMaxDuration(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		l := newAccountServer(t, s, graphql.StreamConfig{MaxDuration: 50 * time.Millisecond})
		l.publish(t)
		l.publish(t)
		ids := publications(t, s)
		read := func(headers ...string) string {
			r := post(`{"query":"`+subscribe+`"}`, "text/event-stream")
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			return serve(l.Handler, r).Body.String() // after the stream has ended
		}
		const start, end = "retry: 2000\nid: %s\n\n", "retry: 2000\n: reconnect to continue\n\n"
		event := "event: next\nid: %s\ndata: {\"data\":{\"catalogPublished\":{\"release\":%d}}}\n\n"
		expect(t, "first", read(), fmt.Sprintf(start, ids[1])+end)
		l.publish(t) // while no client is connected
		ids = publications(t, s)
		want := fmt.Sprintf(start, ids[1]) + fmt.Sprintf(event, ids[2], 3) + end
		wait.Until(t, "the stream continues", func() bool { // on a slow machine, one stream may be too short
			got := read("Last-Event-ID", ids[1])
			return got == want
		})
		expect(t, "open", l.OpenStreams(), 0)
	})
}

// A client that does not read cannot delay the end of its stream.
func TestStreamsOfClientsThatDoNotRead(t *testing.T) {
	l := newAccountServer(t, testkit.Open(t, testkit.SQLite(t)), graphql.StreamConfig{})
	l.Heartbeat = time.Millisecond
	w := &stuckWriter{ResponseRecorder: httptest.NewRecorder(), stuck: make(chan struct{}), released: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.Handler.ServeHTTP(w, post(`{"query":"`+subscribe+`"}`, "text/event-stream"))
	}()
	<-w.stuck
	l.Handler.Close()
	select {
	case <-ended:
	case <-time.After(5 * time.Minute):
		t.Fatal("got an open stream, want it to end")
	}
	expect(t, "open", l.OpenStreams(), 0)
}

// stuckWriter blocks after the headers until its deadline changes.
type stuckWriter struct {
	*httptest.ResponseRecorder
	writes          atomic.Int64
	stuck, released chan struct{}
}

func (w *stuckWriter) Write(p []byte) (int, error) {
	switch w.writes.Add(1) {
	case 1:
		return w.ResponseRecorder.Write(p)
	case 2:
		close(w.stuck)
	}
	<-w.released
	return 0, os.ErrDeadlineExceeded
}

func (w *stuckWriter) SetWriteDeadline(time.Time) error {
	select {
	case <-w.stuck:
		close(w.released)
	default:
	}
	return nil
}
