// Package servertest gives tests the whole server in their process: the real chain and
// mount table, on a database of their own. Start reading at New.
package servertest

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"palmares/auth"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/server"
	"palmares/internal/web/visitor"
)

// URL is the public URL of the servers.
const URL = "https://palmares.example"

// Server is a server under test.
type Server struct {
	*server.Server
	Store *store.Store
	Clock *Clock

	t    testing.TB
	keys int
}

// Option changes the config of a server before it is made.
type Option func(*server.Config)

// On serves a database that is open, with the catalog that it has.
func On(db *store.Store) Option { return func(c *server.Config) { c.Store = db } }

// New returns a server with the demo catalog on SQLite, unless the options say otherwise. It
// does not limit what pages cost.
// It switches to the releases that Publish imports, and to others with Refresh.
func New(t testing.TB, options ...Option) *Server {
	t.Helper()
	clock := &Clock{now: time.Now().UTC()}
	cfg := server.Config{
		Version: "test", PublicURL: URL, ServiceURL: URL, ServiceName: "palmares", CacheMB: 8,
		Database: store.Config{DataDir: t.TempDir()}, Log: slog.New(slog.DiscardHandler), Now: clock.Now, Visitors: &visitor.Limiter{},
	}
	for _, change := range options {
		change(&cfg)
	}
	if cfg.Store == nil {
		database := testkit.SQLite(t)
		copyDemo(t, database.DataDir)
		cfg.Store = testkit.Open(t, database)
	}
	assembled, err := server.New(t.Context(), cfg)
	check.OK(t, err)
	t.Cleanup(assembled.Close)
	return &Server{Server: assembled, Store: cfg.Store, Clock: clock, t: t}
}

// copyDemo copies the files of a database with the demo catalog, which is faster than an
// import.
var copyDemo = testkit.Template(func(t testing.TB, dir string) {
	db := testkit.Open(t, store.Config{DataDir: dir})
	feedtest.Publish(t, db, demo.Catalog())
	check.OK(t, db.Close())
})

// Each runs a test with the demo catalog on each kind of database.
func Each(t *testing.T, test func(*testing.T, *Server), options ...Option) {
	t.Helper()
	testkit.EachStore(t, func(t *testing.T, db *store.Store) {
		feedtest.Publish(t, db, demo.Catalog())
		test(t, New(t, append([]Option{On(db)}, options...)...))
	})
}

// Publish imports a feed and switches the server to it.
func (s *Server) Publish(data []byte) {
	s.t.Helper()
	feedtest.Publish(s.t, s.Store, data)
	check.OK(s.t, s.Refresh(s.t.Context()))
}

// Do sends a request with headers in pairs. A name may repeat. A body is JSON unless they
// say otherwise.
func (s *Server) Do(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, content)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	if body != "" && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// Get requests a path with headers in pairs.
func (s *Server) Get(target string, headers ...string) *httptest.ResponseRecorder {
	return s.Do(http.MethodGet, target, "", headers...)
}

// Key returns an API key of a new account.
func (s *Server) Key(plan auth.Plan) string {
	s.t.Helper()
	s.keys++
	accounts := auth.NewAccounts(s.Store)
	account, err := accounts.Create(s.t.Context(), fmt.Sprintf("account-%d@example.com", s.keys), plan)
	check.OK(s.t, err)
	key, _, err := accounts.CreateKey(s.t.Context(), account, "test")
	check.OK(s.t, err)
	return key
}

// Clock is the clock of a server. It stands still.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Add moves the clock.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
