package graphql_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/graph"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/cache"
	"palmares/internal/core/client"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
	"palmares/internal/transport/graphql"
)

func TestStream(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		l := newStreamServer(t, s)
		early := l.open(t) // before there is a catalog
		expect(t, "content type", early.Header.Get("Content-Type"), "text/event-stream; charset=utf-8")
		expect(t, "cache control", early.Header.Get("Cache-Control"), "no-store")
		l.publish(t)
		l.executor.AnnounceRelease()
		id := publications(t, s)[0]
		expect(t, "first", early.events(t, 1), []string{"event: next|id: " + id + `|data: {"data":{"catalogPublished":{"release":1}}}|`})

		later := l.open(t)
		l.publish(t)
		l.executor.AnnounceRelease()
		id = publications(t, s)[1]
		for _, one := range []*stream{early, later} {
			expect(t, "second", one.events(t, 1), []string{"event: next|id: " + id + `|data: {"data":{"catalogPublished":{"release":2}}}|`})
		}
		l.executor.AnnounceRelease() // nothing new
		l.publish(t)
		l.executor.AnnounceRelease()
		expect(t, "third", strings.Contains(early.events(t, 1)[0], `"release":3`), true)
	})
}

// Where only what is cached may be sent, a known subscription does not start a stream.
func TestStreamsAreNotCached(t *testing.T) {
	l := newStreamServer(t, testkit.Open(t, testkit.SQLite(t)))
	r := httptest.NewRequest(http.MethodGet, "/graphql?query="+url.QueryEscape(subscribe), nil)
	r.Header.Set("Accept", "text/event-stream")
	ended, end := context.WithCancel(t.Context())
	end()
	l.ServeHTTP(httptest.NewRecorder(), r.WithContext(ended)) // now it is known
	responses := make(chan int, 1)
	go func() {
		w := httptest.NewRecorder()
		l.ServeHTTP(w, r.WithContext(cache.WithCachedOnly(t.Context())))
		responses <- w.Code
	}()
	expect(t, "status", wait.Receive(t, "the response", responses), http.StatusBadRequest)
}

func TestStreamFields(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	l := newStreamServer(t, s)
	query := url.QueryEscape(`subscription S {p: catalogPublished {id release updatedAt toolsTotal toolsRetired comparisonsTotal events {type count} __typename}}`)
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, l.server.URL+"?query="+query, nil)
	r.Header.Set("Accept", "text/event-stream")
	response := check.Try(http.DefaultClient.Do(r)).OK(t)
	defer response.Body.Close()
	l.publish(t)
	l.executor.AnnounceRelease()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "data: ") {
	}
	id := publications(t, s)[0]
	expect(t, "GET", lines.Text(), `data: {"data":{"p":{"id":"`+id+`","release":1,"updatedAt":"2026-12-01","toolsTotal":48,"toolsRetired":10,"comparisonsTotal":13,`+
		`"events":[{"type":"category_created","count":8},{"type":"tool_created","count":48},{"type":"tool_retired","count":10},{"type":"price_backfilled","count":24},{"type":"comparatif_published","count":13},{"type":"embeddings_changed","count":18}],"__typename":"Publication"}}}`)
}

func TestStreamResumes(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		l := newStreamServer(t, s)
		for range 4 {
			l.publish(t)
		}
		ids := publications(t, s)
		idsOf := func(events []string) (got []string) {
			for _, event := range events {
				_, rest, _ := strings.Cut(event, "id: ")
				id, _, _ := strings.Cut(rest, "|")
				got = append(got, id)
			}
			return got
		}
		missed := l.open(t, "Last-Event-ID", ids[0])
		expect(t, "missed", idsOf(missed.events(t, 3)), ids[1:4])
		between := l.open(t, "Last-Event-ID", "evt_1") // older than all events
		current := l.open(t, "Last-Event-ID", ids[3])
		restored := l.open(t, "Last-Event-ID", "evt_9000000000000000")
		l.publish(t)
		l.executor.AnnounceRelease()
		ids = publications(t, s)
		expect(t, "then", idsOf(missed.events(t, 1)), ids[4:])
		expect(t, "all", idsOf(between.events(t, 5)), ids)
		expect(t, "nothing missed", idsOf(current.events(t, 1)), ids[4:])
		expect(t, "from before a restore", idsOf(restored.events(t, 1)), ids[4:])

		invalid := l.open(t, "Last-Event-ID", "42")
		body := ""
		for line := range invalid.lines {
			body += line
		}
		check.Equal(t, invalid.StatusCode, 400)
		check.Contains(t, body, "Last-Event-ID must be an event ID, such as evt_42.")
	})
}

// All missed releases are sent in order, even if there are more than one batch
// holds.
func TestManyMissedReleases(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	l := newStreamServer(t, s)
	for i := range 230 {
		feedtest.Publish(t, s, feedtest.Catalog(time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly), feedtest.Tool("a")))
	}
	events := l.open(t, "Last-Event-ID", "evt_1").events(t, 230)
	for i, event := range events {
		check.MustTrue(t, strings.Contains(event, fmt.Sprintf(`"release":%d}`, i+1)), "event %d: got %s, want release %d", i, event, i+1)
	}
}

func TestStreamHeartbeat(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	l := newStreamServer(t, s)
	l.Heartbeat = 20 * time.Millisecond
	one := l.open(t)
	for beats := 0; beats < 30; {
		select {
		case line, ok := <-one.lines:
			check.Must(t, ok, true, "line %q, open", line)
			check.MustTrue(t, line == "" || line == ":", "got line %q, open: %t, want a comment", line, ok)
			if line == ":" {
				beats++
			}
		case <-time.After(wait.Limit):
			t.Fatal("got no line, want a heartbeat")
		}
	}
}

func collect(s *stream) (lines []string) {
	for line := range s.lines {
		lines = append(lines, line)
	}
	return lines
}

// A restored backup ends all streams, and so does a shutdown of the server.
func TestStreamsEnd(t *testing.T) {
	l := newStreamServer(t, testkit.Open(t, testkit.SQLite(t)))
	old := l.open(t)
	l.executor.EndStreams()
	old.waitForEnd(t)
	one := l.open(t)
	l.Handler.Close()
	l.Handler.Close()
	one.waitForEnd(t)
	expect(t, "new stream", l.open(t).StatusCode, 429)
	check.Equal(t, l.server.Config.Shutdown(wait.Context(t)), nil)
	expect(t, "open", l.OpenStreams(), 0)
}

func TestInvalidStreams(t *testing.T) {
	h := demoHandler(t)
	const stream, plain = "text/event-stream", "application/json"
	for _, c := range []struct {
		query, accept string
		status        int
		want          string
	}{
		{subscribe, plain, 406, "Subscriptions are served as server-sent events. Send Accept: text/event-stream."},
		{subscribe, "", 406, "Subscriptions are served as server-sent events"},
		{subscribe, "*/*", 406, "Subscriptions are served as server-sent events"},
		{subscribe, stream + ";q=0, */*", 406, "Subscriptions are served as server-sent events"},
		{`{feed {release}}`, stream, 406, "Accept must allow application/graphql-response+json or application/json."},
		{`{feed {release}}`, stream + ", " + plain, 200, `{"data":{"feed":{"release":1}}}`},
		{`subscription {catalogPublished {bogus}}`, stream, 400, "GRAPHQL_VALIDATION_FAILED"},
		{`subscription {a: catalogPublished {release} b: catalogPublished {release}}`, stream, 400, "A subscription must select exactly one field"},
		{`subscription {...F} fragment F on Subscription {__typename}`, stream, 400, ""},
		{`subscription {catalogPublished @skip(if: true) {release}}`, stream, 400, "A subscription must select exactly one field"},
		{`subscription {__typename}`, stream, 400, ""},
		{`subscription ($v: Boolean!) {catalogPublished @include(if: $v) {release}}`, stream, 400, "$v is required."},
	} {
		got := serve(h, post(`{"query":"`+c.query+`"}`, c.accept))
		check.Equal(t, got.Code, c.status, "%s as %q", c.query, c.accept)
		check.Contains(t, got.Body.String(), c.want, "%s as %q", c.query, c.accept)
	}
	r := httptest.NewRequest(http.MethodHead, "/graphql?query="+url.QueryEscape(subscribe), nil)
	r.Header.Set("Accept", stream)
	expect(t, "HEAD", serve(h, r).Code, 405)
	result := newExecutor(testkit.Open(t, testkit.SQLite(t))).Execute(t.Context(), graph.Request{Query: subscribe})
	p := result.Problem()
	check.MustTrue(t, p != nil, "executed like a query: got %+v, want %s", p, problem.NotAcceptable)
	check.Equal(t, p.Code, problem.NotAcceptable, "executed like a query")
}

// Without a database, new streams fail, and open ones continue once it is
// available again.
func TestStreamWithoutDatabase(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	l := newStreamServer(t, s)
	l.Heartbeat = 20 * time.Millisecond
	l.publish(t)
	one := l.open(t)
	rename := func(from, to string) {
		check.Try(s.Write.ExecContext(t.Context(), "ALTER TABLE "+from+" RENAME TO "+to)).OK(t)
	}
	l.publish(t)
	rename("journal_entries", "elsewhere")
	l.executor.AnnounceRelease()
	rejected := l.open(t)
	expect(t, "another", rejected.StatusCode, 503)
	_, _ = io.Copy(io.Discard, rejected.Body)
	rename("elsewhere", "journal_entries")
	expect(t, "continues", strings.Contains(one.events(t, 1)[0], `"release":2}`), true)
}

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
	acc := check.Try(l.accounts.Create(t.Context(), email, plan)).OK(t)
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
	check.Equal(t, s.Header.Get("Retry-After"), retryAfter)
	check.Contains(t, body, `"code":"TOO_MANY_REQUESTS"`)
	check.Contains(t, body, message)
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
			return check.Try(l.accounts.Find(t.Context(), email)).OK(t)
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

// Each part of a stream may take longer than the server allows for a whole response, but a
// client that does not read cannot delay the end of its stream.
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
	check.Must(t, len(w.allowed), 3, "deadlines: of the headers, a heartbeat and the end")
	const response = 10 * time.Second // the server's limit
	check.True(t, w.allowed[0] > response && w.allowed[1] > response && w.allowed[2] <= time.Second, "got %s, want more than %s twice, and then at most 1s", w.allowed, response)
}

// stuckWriter blocks after the headers until its deadline changes.
type stuckWriter struct {
	*httptest.ResponseRecorder
	writes          atomic.Int64
	allowed         []time.Duration // until each deadline
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

func (w *stuckWriter) SetWriteDeadline(deadline time.Time) error {
	w.allowed = append(w.allowed, time.Until(deadline))
	select {
	case <-w.stuck:
		close(w.released)
	default:
	}
	return nil
}
