package quota_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"palmares/internal/core/cache"
	"palmares/internal/core/limiter"
	"palmares/internal/core/middleware"
	"palmares/internal/core/problem"
	"palmares/internal/core/quota"
	"palmares/internal/dev/check"
)

// gated is a handler behind a gate. Each path has its own response, and
// executions are counted.
type gated struct {
	http.Handler
	responses *cache.Cache
	executed  int
}

func newGated(store quota.Store) *gated {
	g := &gated{responses: cache.New(8<<20, []byte("secret"), slog.New(slog.DiscardHandler))}
	g.responses.Publish(1)
	gate := &quota.Gate{Store: store, Caller: developer, Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
	g.Handler = gate.Count(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response, err := g.responses.Get(r.Context(), cache.Key{Operation: r.URL.Path}, func(context.Context) (*cache.Entry, int, error) {
			g.executed++
			return cache.NewEntry([]byte("body of "+r.URL.Path), http.Header{}), 1, nil
		})
		if err == nil {
			err = response.Write(w, r)
		}
		if err != nil {
			problem.Write(w, err)
		}
	}))
	return g
}

func developer(*http.Request) quota.Caller {
	return quota.Caller{Subject: quota.Account(7), Limit: 1_000, Tier: "free"}
}

// get requests a path on the Developer plan.
func (g *gated) get(path string, tags ...string) *httptest.ResponseRecorder {
	return g.send(http.MethodGet, path, tags...)
}

func (g *gated) send(method, path string, tags ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Header["If-None-Match"] = tags
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

// limited returns a gate for one account with a daily limit, at a fixed time.
func limited(store quota.Store, limit *int) *quota.Gate {
	return &quota.Gate{
		Store: store, Now: func() time.Time { return time.Unix(1_800_000_000, 0) },
		Caller: func(*http.Request) quota.Caller {
			return quota.Caller{Subject: quota.Account(7), Limit: *limit, Tier: "free"}
		},
	}
}

func byPath(r *http.Request) string { return r.URL.Path }

// send requests a path, and returns the response.
func send(handler http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// shown returns the status and the requests that are left.
func shown(w *httptest.ResponseRecorder) string {
	return fmt.Sprint(w.Code, " ", w.Header().Get("X-RateLimit-Remaining"))
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	check.Equal(t, fmt.Sprint(got), fmt.Sprint(want), "%s: %v", what, got)
}

// A 304 is free for each method that is safe.
func TestMethodsOfFreeResponses(t *testing.T) {
	for method, c := range map[string]struct {
		code      int
		remaining string
	}{
		http.MethodGet:         {http.StatusNotModified, "999"},
		http.MethodHead:        {http.StatusNotModified, "999"},
		middleware.MethodQuery: {http.StatusNotModified, "999"},
		http.MethodPost:        {http.StatusOK, "998"},
	} {
		g := newGated(quota.NewCounter())
		tag := g.get("/one").Header().Get("ETag")
		got := g.send(method, "/one", tag)
		want(t, method, got.Code, c.code)
		want(t, method+": remaining", got.Header().Get("X-RateLimit-Remaining"), c.remaining)
		for range 1_000 {
			g.get("/one")
		}
		if c.code == http.StatusOK {
			c.code = http.StatusTooManyRequests
		}
		want(t, method+" beyond the quota", g.send(method, "/one", tag).Code, c.code)
	}
}

// changes counts changes of a store.
type changes struct {
	quota.Store
	taken, refunded int
}

func (s *changes) Take(ctx context.Context, subject quota.Subject, day quota.Day, limit int) int {
	s.taken++
	return s.Store.Take(ctx, subject, day, limit)
}

func (s *changes) Refund(ctx context.Context, subject quota.Subject, day quota.Day) {
	s.refunded++
	s.Store.Refund(ctx, subject, day)
}

// A 304 from the cache is never counted. Any other conditional request reaches the
// handler unchanged.
func TestNotModifiedIsNotCounted(t *testing.T) {
	store := &changes{Store: quota.NewCounter()}
	g := newGated(store)
	tag := g.get("/one").Header().Get("ETag")
	again := g.get("/one", tag)
	want(t, "again", fmt.Sprint(again.Code, " ", again.Header().Get("X-RateLimit-Remaining"), " ", again.Header().Get("ETag")), "304 999 "+tag)
	want(t, "changes", fmt.Sprint(store.taken, " ", store.refunded), "1 0")
	want(t, "another tag", g.get("/one", `"AAAAAAAAAAAAAAAAAAAA"`).Body, "body of /one")
	want(t, "changes", fmt.Sprint(store.taken, " ", store.refunded), "2 0")

	gate := &quota.Gate{Store: store, Caller: developer, Now: time.Now}
	echo := gate.Count(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("X-Read", "once")
		_, _ = io.Copy(w, r.Body)
	}))
	r, w := httptest.NewRequest(middleware.MethodQuery, "/", strings.NewReader("{ a }")), httptest.NewRecorder()
	r.Header.Set("If-None-Match", tag)
	echo.ServeHTTP(w, r)
	want(t, "body", w.Body, "{ a }")
	want(t, "header", w.Header()["X-Read"], []string{"once"})
}

// Once the quota is used up, a cached response may still be revalidated with a
// 304. Nothing is executed, and every other response is 429.
func TestNotModifiedOverQuota(t *testing.T) {
	g := newGated(quota.NewCounter())
	tag := g.get("/one").Header().Get("ETag")
	for i := 1; i < 1_000; i++ {
		g.get("/one")
	}
	executed := g.executed
	unknown := `"AAAAAAAAAAAAAAAAAAAA"`
	for name, c := range map[string]struct {
		path string
		tags []string
		code int
	}{
		"cached, its tag":         {"/one", []string{tag}, http.StatusNotModified},
		"cached, two tags":        {"/one", []string{unknown + ", " + tag}, http.StatusNotModified},
		"cached, another tag":     {"/one", []string{unknown}, http.StatusTooManyRequests},
		"cached, any tag":         {"/one", []string{"*"}, http.StatusTooManyRequests},
		"cached, its tag and any": {"/one", []string{tag, "*"}, http.StatusTooManyRequests},
		"cached, no tag":          {"/one", nil, http.StatusTooManyRequests},
		"not cached":              {"/two", []string{tag}, http.StatusTooManyRequests},
	} {
		got := g.get(c.path, c.tags...)
		want(t, name, got.Code, c.code)
		want(t, name+": remaining", got.Header().Get("X-RateLimit-Remaining"), "0")
		if c.code == http.StatusNotModified {
			want(t, name+": tag", got.Header().Get("ETag"), tag)
			continue
		}
		want(t, name+": tag", got.Header().Get("ETag"), "")
		want(t, name+": type", got.Header().Get("Content-Type"), "application/json")
		check.True(t, got.Header().Get("Retry-After") != "", "%s: got no Retry-After header, want one", name)
	}
	want(t, "executions", g.executed, executed)
}

// A 304 from the cache is always refunded. One that required executing the query is
// refunded at most as many times a day as the quota allows requests.
func TestRefundsOfExecutedNotModified(t *testing.T) {
	g := newGated(quota.NewCounter())
	tags := map[string]string{}
	const paths = 1_500
	for i := range 500 { // each costs one request
		path := fmt.Sprint("/", i)
		tags[path] = g.get(path).Header().Get("ETag")
	}
	remaining := func() string { return g.get("/0", tags["/0"]).Header().Get("X-RateLimit-Remaining") }
	want(t, "after 500 requests", remaining(), "500")
	g.responses.Restart(1) // the cache is empty again
	refunded := 0
	for i := range paths {
		path := fmt.Sprint("/", i%500)
		if i%500 == 0 {
			g.responses.Restart(1)
		}
		if got := g.get(path, tags[path]); got.Code == http.StatusNotModified {
			refunded++
		}
	}
	// 1,000 were refunded, and 500 used up the rest of the quota.
	want(t, "304s", refunded, paths)
	want(t, "remaining", remaining(), "0")
	want(t, "one more", g.get("/new").Code, http.StatusTooManyRequests)
}

// The headers of the IETF draft accompany X-RateLimit-*, and every rejection.
func TestRateLimitHeaders(t *testing.T) {
	const policy, untilMidnight = `"day";q=3;w=86400`, "57600" // from 2027-01-15T08:00:00Z
	for _, tier := range []string{"free", ""} {
		gate := &quota.Gate{
			Store: quota.NewCounter(), Now: func() time.Time { return time.Unix(1_800_000_000, 0) },
			Caller: func(*http.Request) quota.Caller {
				return quota.Caller{Subject: quota.Account(7), Limit: 3, Tier: tier}
			},
		}
		handler := gate.Count(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/unauthorized" {
				problem.Write(w, problem.New(problem.Unauthenticated, "No."))
			}
		}))
		for i, c := range []struct {
			path string
			code int
			left string
		}{{"/", 200, "2"}, {"/unauthorized", 401, "2"}, {"/", 200, "1"}, {"/", 200, "0"}, {"/", 429, "0"}} {
			w := send(handler, c.path)
			limit, wantPolicy := `"day";r=`+c.left+";t="+untilMidnight, policy
			if tier == "" && c.code != 429 { // callers without a key see no limits
				limit, wantPolicy = "", ""
			}
			what := fmt.Sprintf("tier %q, request %d", tier, i)
			want(t, what, w.Code, c.code)
			want(t, what, w.Header().Get("RateLimit"), limit)
			want(t, what, w.Header().Get("RateLimit-Policy"), wantPolicy)
			if c.code == 429 {
				want(t, what, w.Header().Get("Retry-After"), untilMidnight)
			}
			if c.code >= 400 {
				want(t, what, w.Header().Get("Vary"), "Authorization")
			}
		}
	}
	unlimited := &quota.Gate{Store: quota.NewCounter(), Now: time.Now, Caller: func(*http.Request) quota.Caller {
		return quota.Caller{Subject: quota.Account(7), Tier: "pro"}
	}}
	w := send(unlimited.Count(http.NotFoundHandler()), "/")
	want(t, "unlimited", w.Header().Get("RateLimit")+w.Header().Get("RateLimit-Policy"), "")
}

func TestCacheStatus(t *testing.T) {
	g := newGated(quota.NewCounter())
	first := g.get("/a")
	want(t, "first", first.Header().Get("Cache-Status"), "palmares; fwd=miss")
	want(t, "second", g.get("/a").Header().Get("Cache-Status"), "palmares; hit")
	again := g.get("/a", first.Header().Get("ETag"))
	want(t, "not modified", fmt.Sprint(again.Code, " ", again.Header().Get("Cache-Status")), "304 palmares; hit")
}

// A request that a handler rejects with 429 is not counted, and the handler's own
// limit is sent along with the quota.
func TestRejectionsOfHandlersAreFree(t *testing.T) {
	handler := limited(quota.NewCounter(), new(3)).Count(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("RateLimit", `"downloads";r=0;t=5`)
		problem.Write(w, problem.New(problem.TooMany, "Not now."))
	}))
	for range 5 {
		w := send(handler, "/")
		want(t, "status", w.Code, http.StatusTooManyRequests)
		want(t, "remaining", w.Header().Get("X-RateLimit-Remaining"), "3")
		limits := w.Header()["Ratelimit"]
		check.Must(t, len(limits), 2, "RateLimit %q", limits)
		check.True(t, strings.HasPrefix(limits[0], `"day";r=3;`), "got RateLimit %q, want the quota and the handler's own limit", limits)
		check.Equal(t, limits[1], `"downloads";r=0;t=5`)
	}
}

// Record sees what is counted: not free responses, nor those beyond the quota.
func TestRecordedRequests(t *testing.T) {
	recorded, calls := 0, 0
	gate := limited(quota.NewCounter(), new(3))
	gate.Record = func(r *http.Request, day quota.Day, n int) {
		want(t, "day", day, quota.DayOf(time.Unix(1_800_000_000, 0)))
		recorded, calls = recorded+n, calls+1
	}
	handler := gate.Count(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/denied" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	send(handler, "/denied")
	want(t, "denied", recorded, 0)
	for _, total := range []int{1, 2} {
		send(handler, "/one")
		want(t, "counted", recorded, total)
	}
	want(t, "single call", gate.Take(httptest.NewRecorder(), httptest.NewRequest("POST", "/mcp", nil)), nil)
	want(t, "single call", recorded, 3)
	want(t, "single call beyond the quota", problem.Of(gate.Take(httptest.NewRecorder(), httptest.NewRequest("POST", "/mcp", nil))).Code, problem.QuotaSpent)
	send(handler, "/one")
	want(t, "beyond the quota", recorded, 3)
	want(t, "calls of Record", calls, 5)
}

// All requests for the same thing on a day count once, also beyond the quota and if they
// are concurrent. Free responses leave it uncounted.
func TestCountedOnce(t *testing.T) {
	t.Parallel()
	counter := quota.NewCounter()
	status := http.StatusOK
	gate := limited(counter, new(2))
	gate.Once = byPath
	handler := gate.Count(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	get := func(path string) string { return shown(send(handler, path)) }
	status = http.StatusUnauthorized
	want(t, "refused", get("/a"), "401 2")
	status = http.StatusOK
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() { get("/a") })
	}
	group.Wait()
	want(t, "a range", get("/a"), "200 1")
	want(t, "another file", get("/b"), "200 0")
	want(t, "a third file", get("/c"), "429 0")
	want(t, "a third file again", get("/c"), "429 0")
	want(t, "a range over the quota", get("/a"), "200 0")
	want(t, "count", counter.Count(t.Context(), quota.Account(7), quota.DayOf(gate.Now())), 2)
}

// A free request that starts more work counts after all, unless the quota is used up.
func TestCountedAgain(t *testing.T) {
	t.Parallel()
	counter := quota.NewCounter()
	gate := limited(counter, new(2))
	gate.Once = byPath
	handler := gate.Count(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "" {
			if err := quota.CountAgain(unwrapper{w}); err != nil {
				problem.Write(w, err)
				return
			}
		}
		w.WriteHeader(map[string]int{"": 200, "build": 200, "busy": 429}[r.URL.RawQuery])
	}))
	for _, c := range []struct{ target, want string }{
		{"/a?build", "200 1"}, {"/a", "200 1"}, {"/a?busy", "429 1"}, {"/a", "200 1"}, {"/a?build", "200 0"}, {"/a?build", "429 0"}, {"/a", "200 0"}, {"/b", "429 0"},
	} {
		want(t, c.target, shown(send(handler, c.target)), c.want)
	}
	want(t, "count", counter.Count(t.Context(), quota.Account(7), quota.DayOf(gate.Now())), 2)
}

// unwrapper is a writer of another middleware.
type unwrapper struct{ http.ResponseWriter }

func (w unwrapper) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// overtaken lets another request run after a count was read.
type overtaken struct {
	quota.Store
	by func()
}

func (s *overtaken) Count(ctx context.Context, subject quota.Subject, day quota.Day) int {
	count := s.Store.Count(ctx, subject, day)
	if s.by != nil {
		s.by()
	}
	return count
}

// Of two requests for the same thing that both find it new, one is refunded. A rejected
// request that was free is not refunded again.
func TestCountedOnceByTheFirst(t *testing.T) {
	store := &overtaken{Store: quota.NewCounter()}
	recorded := 0
	gate := limited(store, new(3))
	gate.Once, gate.Record = byPath, func(_ *http.Request, _ quota.Day, n int) { recorded += n }
	status := http.StatusOK
	handler := gate.Count(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	path := "/a"
	get := func() string { return shown(send(handler, path)) }
	store.by = func() {
		store.by = nil
		want(t, "first", get(), "200 2")
	}
	want(t, "second", get(), "200 2")
	want(t, "recorded", recorded, 1)
	status = http.StatusUnauthorized
	want(t, "refused, without a refund", get(), "401 2")
	path = "/b"
	store.by = func() {
		store.by, status = nil, http.StatusOK
		want(t, "first", get(), "200 1")
		status = http.StatusUnauthorized
	}
	want(t, "second, without a refund", get(), "401 1")
	want(t, "recorded", recorded, 2)
}

// A response is refunded once, and only if it is free.
func TestRefundedOnce(t *testing.T) {
	recorded, limit, counter := 0, 3, quota.NewCounter()
	gate := limited(quota.Watched{Store: counter, Watch: func(context.Context) func() { return func() {} }}, &limit)
	gate.Once, gate.Record = func(r *http.Request) string { return r.URL.Query().Get("once") }, func(_ *http.Request, _ quota.Day, n int) { recorded += n }
	var statuses []int
	handler := gate.Count(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cache.CachedOnly(r.Context()) {
			http.NotFound(w, r)
			return
		}
		if w, ok := w.(cache.ExecutionReporter); ok {
			w.ReportExecution()
		}
		for _, status := range statuses {
			w.WriteHeader(status)
		}
		check.Equal(t, http.NewResponseController(w).Flush(), nil)
	}))
	get := func(path string, answers ...int) string {
		statuses = answers
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("If-None-Match", `"a"`)
		handler.ServeHTTP(w, r)
		return fmt.Sprint(shown(w), ", recorded ", recorded)
	}
	want(t, "another response than the client has", get("/", 200), "200 2, recorded 1")
	want(t, "the same response, written twice", get("/", 304, 304), "304 2, recorded 1")
	want(t, "a thing", get("/?once=a", 200), "200 1, recorded 2")
	limit = 1
	want(t, "the same thing after the limit was lowered", get("/?once=a", 200), "200 0, recorded 2")
	limit = 0
	want(t, "without a limit", get("/", 304), "304 , recorded 2")
	want(t, "count", counter.Count(t.Context(), quota.Account(7), quota.DayOf(gate.Now())), 2)
}

// A response that takes several requests counts all of them, or none.
func TestCountedMore(t *testing.T) {
	counter, limit := quota.NewCounter(), 10
	store := &overtaken{Store: counter}
	gate := limited(store, &limit)
	handler := gate.Count(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		if err := quota.CountMore(unwrapper{w}, n); err != nil {
			problem.Write(w, err)
		}
	}))
	for _, c := range []struct {
		limit           int
		more            string
		status          int
		remaining, text string
	}{
		{10, "4", 200, "5", ""}, {10, "5", 429, "4", "counts as 6 requests, but only 5 of the daily quota of 10 are left"}, {10, "3", 200, "0", ""},
		{10, "0", 429, "0", "used up"}, {11, "1", 429, "0", "counts as 2 requests, but only 1 of"}, {0, "5", 200, "", ""},
	} {
		limit = c.limit
		w := send(handler, "/?n="+c.more)
		check.Equal(t, w.Code, c.status, "%s more: %s", c.more, w.Body)
		check.Equal(t, w.Header().Get("X-RateLimit-Remaining"), c.remaining, "%s more", c.more)
		check.Contains(t, w.Body.String(), c.text, "%s more", c.more)
	}
	limit = 20          // 17 are used
	store.by = func() { // takes one of the last two
		store.by = nil
		counter.Take(t.Context(), quota.Account(7), quota.DayOf(gate.Now()), limit)
	}
	w := send(handler, "/?n=2")
	check.Equal(t, w.Code, 429, w.Body)
	check.Contains(t, w.Body.String(), "used up")
	check.Equal(t, counter.Count(t.Context(), quota.Account(7), quota.DayOf(gate.Now())), 19, "requests")
}

// A response from the cache is free as often as FreeRate allows.
func TestFreeFromTheCache(t *testing.T) {
	counter := quota.NewCounter()
	gate := &quota.Gate{
		Store: counter, Caller: developer, Now: time.Now, Free: func(r *http.Request) bool { return r.URL.Path == "/free" },
		FreeRate: &limiter.Rate[quota.Subject]{Limit: 1, Window: time.Hour, Now: time.Now},
	}
	handler := gate.Count(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "body") }))
	for _, c := range []struct {
		path  string
		count int
	}{{"/counted", 1}, {"/free", 1}, {"/free", 2}} {
		want(t, c.path, send(handler, c.path).Body, "body")
		want(t, c.path, counter.Count(t.Context(), quota.Account(7), quota.DayOf(time.Now())), c.count)
	}
}
