package server

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/release"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/ledger"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
	"palmares/internal/notify/webhook"
	"palmares/internal/ops/metrics"
	"palmares/rest"
)

// A server that is started during an import waits for its end.
func TestServeWaitsForImports(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	log := &testkit.Log{}
	started := make(chan error, 1)
	err := testkit.Open(t, cfg).Exclusive(t.Context(), func(*ent.Tx) error {
		go func() {
			s, err := New(t.Context(), Config{Listen: "127.0.0.1:0", Database: cfg, CacheMB: 1, FilesMB: 1, ServiceName: "palmares", Log: slog.New(slog.NewTextHandler(log, nil))})
			if err == nil {
				s.Close()
			}
			started <- err
		}()
		wait.Until(t, "the server waits", func() bool {
			return len(started) > 0 || strings.Contains(log.String(), "waiting for another import")
		})
		check.True(t, len(started) == 0, "the server did not wait for the end of the import")
		return nil
	})
	check.OK(t, err)
	check.Equal(t, <-started, nil, "after the import")
}

// The next start continues one that was interrupted between two editions, and
// servers that start at the same time do not affect each other.
func TestPublishDemo(t *testing.T) {
	t.Parallel()
	editions := check.Try(demo.Editions()).OK(t)
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		for _, edition := range editions[:3] {
			check.Try(publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(edition.Feed)), publish.Options{})).OK(t)
		}
		group, ctx := errgroup.WithContext(t.Context())
		for range 3 {
			group.Go(func() error { return publishDemo(ctx, s) })
		}
		check.OK(t, group.Wait())
		var dates []string
		for _, release := range s.Read.Release.Query().Order(release.ByID()).AllX(t.Context()) {
			dates = append(dates, release.FeedDate)
		}
		var want []string
		for _, edition := range editions {
			want = append(want, edition.Date)
		}
		check.Slices(t, dates, want, "releases of")
		var exported bytes.Buffer
		check.OK(t, publish.Export(t.Context(), s, &exported, 0))
		check.True(t, exported.String() == string(demo.Catalog()),
			"got a catalog of %d bytes, want the demo catalog", exported.Len())
	})
	// A database that has another catalog keeps it.
	for name, catalog := range map[string][]byte{
		"another catalog": feedtest.Catalog("2020-01-01", feedtest.Tool("a")),
		"another catalog with the date of the first edition": feedtest.Catalog(editions[0].Date, feedtest.Tool("a")),
		"the demo catalog without earlier editions":          demo.Catalog(),
	} {
		s := testkit.Open(t, testkit.SQLite(t))
		feedtest.Publish(t, s, catalog)
		check.OK(t, publishDemo(t.Context(), s), name)
		var exported bytes.Buffer
		check.OK(t, publish.Export(t.Context(), s, &exported, 0))
		check.Equal(t, exported.String(), string(catalog), name)
		check.Equal(t, s.Read.Release.Query().CountX(t.Context()), 1, name)
	}
}

func TestNotReadyWhileLoadingOrDraining(t *testing.T) {
	t.Parallel()
	loaded := false
	h := health{store: testkit.Open(t, testkit.SQLite(t)), log: slog.New(slog.DiscardHandler), release: &atomic.Pointer[ent.Release]{}, loaded: func() bool { return loaded }, state: &state{}}
	h.release.Store(&ent.Release{})
	status := func() int {
		recorder := httptest.NewRecorder()
		h.ready(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		return recorder.Code
	}
	check.Equal(t, status(), http.StatusServiceUnavailable, "while the catalog is being loaded")
	loaded = true
	check.Equal(t, status(), http.StatusOK, "before")
	h.state.draining.Store(true)
	check.Equal(t, status(), http.StatusServiceUnavailable, "while draining")
}

// Expired data is deleted, unless the clocks of server and database differ.
func TestCleanUpComparesClocks(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		var output bytes.Buffer
		log := slog.New(slog.NewTextHandler(&output, nil))
		p := &cleanup{db, webhook.New(webhook.Config{Store: db, Log: log}), log}
		acc := db.Write.Account.Create().SetEmail("ana@example.com").SetPlan("developer").SaveX(t.Context())
		now := time.Now().UTC()
		expires := func(id string, at time.Time) {
			db.Write.Session.Create().SetID(id).SetAccountID(acc.ID).SetExpiresAt(at).ExecX(t.Context())
		}
		expires("expired", now.Add(-time.Minute))
		expires("valid", now.Add(24*time.Hour))
		db.Write.CountBatch.Create().SetID("old").SetDay(quota.DayOf(now.AddDate(0, 0, -3)).String()).SetCounts([]byte{}).ExecX(t.Context())
		db.Write.BillingEvent.Create().SetID("evt_old").SetType("invoice.paid").SetAppliedAt(now.AddDate(0, 0, -91)).ExecX(t.Context())
		remaining := func() int {
			return db.Write.Session.Query().CountX(t.Context()) + db.Write.BillingEvent.Query().CountX(t.Context()) + db.Write.CountBatch.Query().CountX(t.Context())
		}
		if db.Describe() == "PostgreSQL" {
			for _, wrong := range []time.Time{now.AddDate(1, 0, 0), now.AddDate(-1, 0, 0), now.Add(2 * time.Hour)} {
				p.delete(t.Context(), wrong)
				check.Equal(t, remaining(), 4, "%s: rows", wrong)
			}
			check.Equal(t, strings.Count(output.String(), "cleanup skipped"), 3, "warnings")
		}
		p.delete(t.Context(), now)
		check.Equal(t, remaining(), 1, "rows")
	})
}

func TestPrivateAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"http://localhost:8080":        true,
		"http://127.0.0.1:8080":        true,
		"http://[::1]:8080":            true,
		"http://[::ffff:10.0.0.1]":     true,
		"http://192.168.1.5":           true,
		"https://build.internal":       true,
		"https://palmares.test":        true,
		"http://nas":                   true,
		"https://palmares.example":     false,
		"http://palmares.example:8080": false,
		"https://203.0.113.9":          false,
		"https://localhost.example":    false,
		"https://test":                 true,
		"https://[2001:db8::1]":        false,
	} {
		check.Equal(t, IsPrivate(address), want, address)
	}
}

// Every documented path has its own label, subtrees share one, and all unknown
// paths share one.
func TestRouteLabels(t *testing.T) {
	t.Parallel()
	routes := newRoutes(table(handlers{}))
	labels := map[string]string{
		"/api/v1/tools/":                    metrics.Other,
		"/api/v1/tools/plume/more":          metrics.Other,
		"/api/v1/openapi.json":              "/api/v1/openapi.json",
		"/api/v1/anything":                  metrics.Other,
		"/graphql":                          "/graphql",
		"/":                                 "/",
		"*":                                 metrics.Other,
		"//":                                "/",
		"/tools/plume":                      "/tools/{slug}",
		"/feeds/changes.atom":               "/feeds/",
		"/schemas/events/tool.created.json": "/schemas/events/",
		"/schemas/feed/tool.json":           "/schemas/feed/",
		"/login":                            "/login",
		"/login/confirm":                    "/login/",
		"/account/keys/12/revoke":           "/account/",
		"/accounts/x":                       metrics.Other,
		"/assets/style.css":                 "/assets/",
		"/assets/workbench/a.js":            "/assets/",
		"/healthz":                          "/healthz",
		"/wp-login.php":                     metrics.Other,
		"/" + strings.Repeat("a/", 5_000):   metrics.Other,
		"/guides/start.md":                  "/guides/",
	}
	open, keyed := rest.Paths()
	for _, path := range append(open, keyed...) {
		labels[strings.ReplaceAll(path, "{slug}", "plume")] = path
	}
	for path, want := range labels {
		check.Equal(t, routes.match(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}}).label, want, "%.40q: label", path)
	}
}

// Only requests of accounts are recorded, and those of browsers without the key of
// their session.
func TestRecordedKeys(t *testing.T) {
	db := testkit.Open(t, testkit.SQLite(t))
	calls := ledger.New(db, quota.NewCounter(), false, slog.New(slog.DiscardHandler))
	record := record(calls, newRoutes(table(handlers{})))
	for _, caller := range []auth.Caller{
		{Plan: auth.Anonymous}, {Account: 1, Subject: 9, Key: "key"}, {Account: 1, Subject: 9, Key: "session", Browser: true}, {Account: 1, Subject: 9, Key: "token"},
	} {
		r := httptest.NewRequest("GET", "/x", nil)
		record(r.WithContext(auth.WithCaller(t.Context(), caller)), 1, 1)
	}
	calls.Write(t.Context())
	var got []string
	for _, row := range db.Write.Usage.Query().AllX(t.Context()) {
		got = append(got, fmt.Sprintf("%d %q %d", row.Subject, row.Key, row.Requests))
	}
	slices.Sort(got)
	check.Equal(t, strings.Join(got, ", "), `9 "" 1, 9 "key" 1, 9 "token" 1`, got)
}

// BenchmarkRecordCall measures the overhead of counting a request with a key by endpoint.
func BenchmarkRecordCall(b *testing.B) {
	record := record(ledger.New(nil, quota.NewCounter(), false, slog.New(slog.DiscardHandler)), newRoutes(table(handlers{})))
	for _, path := range []string{"/graphql", "/api/v1/tools/plume"} {
		b.Run(path, func(b *testing.B) {
			r := httptest.NewRequest("GET", path, nil)
			r = r.WithContext(auth.WithCaller(b.Context(), auth.Caller{Plan: auth.Developer, Account: 1, Key: "0123456789ab"}))
			b.ReportAllocs()
			for b.Loop() {
				record(r, 20000, 1)
			}
		})
	}
}
