package graphql_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"palmares/graph"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
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
		opened := time.Now()
		l.publish(t)
		l.executor.AnnounceRelease()
		id = publications(t, s)[1]
		for _, one := range []*stream{early, later} {
			expect(t, "second", one.events(t, 1), []string{"event: next|id: " + id + `|data: {"data":{"catalogPublished":{"release":2}}}|`})
		}
		expect(t, "streams beyond the server's limit", l.conns.extended(opened), 2)
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
	response, err := http.DefaultClient.Do(r)
	check.OK(t, err)
	defer response.Body.Close()
	opened := time.Now()
	l.publish(t)
	l.executor.AnnounceRelease()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "data: ") {
	}
	expect(t, "streams beyond the server's limit", l.conns.extended(opened), 1)
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
		if !strings.Contains(event, fmt.Sprintf(`"release":%d}`, i+1)) {
			t.Fatalf("event %d: got %s, want release %d", i, event, i+1)
		}
	}
}

func TestStreamHeartbeat(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	l := newStreamServer(t, s)
	l.Heartbeat = 20 * time.Millisecond
	one := l.open(t)
	opened := time.Now()
	for beats := 0; beats < 30; {
		select {
		case line, ok := <-one.lines:
			if !ok || (line != "" && line != ":") {
				t.Fatalf("got line %q, open: %t, want a comment", line, ok)
			}
			if line == ":" {
				beats++
			}
		case <-time.After(wait.Limit):
			t.Fatal("got no line, want a heartbeat")
		}
	}
	expect(t, "streams beyond the server's limit", l.conns.extended(opened), 1)
}

func TestManyStreams(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		l := newStreamServer(t, s)
		l.publish(t)
		var all []*stream
		for range 50 {
			all = append(all, l.open(t))
		}
		expect(t, "open", l.OpenStreams(), 50)
		l.publish(t)
		l.executor.AnnounceRelease()
		var reading sync.WaitGroup
		for _, one := range all {
			reading.Go(func() {
				check.Contains(t, one.events(t, 1)[0], `"release":2}`, "want release 2")
			})
		}
		reading.Wait()
		for _, one := range all {
			one.disconnect()
		}
		wait.Until(t, "disconnected streams are no longer counted", func() bool { return l.OpenStreams() == 0 })
	})
}

func TestTooManyStreams(t *testing.T) {
	l := newStreamServer(t, testkit.Open(t, testkit.SQLite(t)))
	l.MaxStreams = 2
	first := l.open(t)
	l.open(t)
	third := l.open(t)
	body := strings.Join(collect(third), "")
	if third.StatusCode != 429 || third.Header.Get("Retry-After") != "30" || !strings.Contains(body, `"code":"TOO_MANY_REQUESTS"`) {
		t.Errorf("got %d %s, want 429", third.StatusCode, body)
	}
	first.disconnect()
	wait.Until(t, "the stream is no longer counted", func() bool { return l.OpenStreams() == 1 })
	expect(t, "now", l.open(t).StatusCode, 200)
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

func TestAnnounceNeverBlocks(t *testing.T) {
	l := newStreamServer(t, testkit.Open(t, testkit.SQLite(t)))
	l.open(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 10_000 {
			l.executor.AnnounceRelease()
		}
	}()
	wait.Receive(t, "announcements do not block", done)
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
	if p := result.Problem(); p == nil || p.Code != problem.NotAcceptable {
		t.Errorf("executed like a query: got %+v, want %s", p, problem.NotAcceptable)
	}
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
		if _, err := s.Write.ExecContext(t.Context(), "ALTER TABLE "+from+" RENAME TO "+to); err != nil {
			t.Fatal(err)
		}
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
