package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"palmares/cmd/palmares/commands"
	"palmares/ent"
	"palmares/graph"
	"palmares/graph/document"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/files"
	"palmares/internal/core/cache"
	"palmares/internal/core/edge"
	"palmares/internal/core/middleware"
	"palmares/internal/core/store"
	"palmares/internal/ops/tracing"
	"palmares/internal/transport/graphql"
	"palmares/internal/transport/mcp"
	"palmares/internal/transport/saved"
	"palmares/internal/web/page"
	"palmares/internal/web/status"
)

const (
	readHeaderTimeout = 5 * time.Second
	writeTimeout      = 60 * time.Second
)

type serveCommand struct {
	Demo bool `help:"Publish the demo catalog and its earlier editions if the database is empty."`
}

// Run serves until ctx ends and all requests in flight are finished.
func (c *serveCommand) Run(ctx context.Context, s *settings, term commands.Terminal) error {
	log, buffer := newLogger(term.Err)
	if buffer != nil {
		defer buffer.Flush()
	}
	traces, err := tracing.New(ctx, version, log)
	if err != nil {
		return err
	}
	if traces != nil {
		defer traces.Close()
		log = tracing.WithTraceIDs(log)
	}
	setDefaultLogger(log)
	tuneMemory(s, 0)
	if c.Demo {
		s.useDemoFacts()
	}
	p, err := newProgram(ctx, s, log, traces, c.Demo)
	if err != nil {
		return err
	}
	defer p.close()
	if missing := s.missingFacts(); len(missing) > 0 && !c.Demo {
		level := slog.LevelWarn
		if isPrivate(s.PublicURL) { // the law requires them of public sites
			level = slog.LevelInfo
		}
		log.Log(ctx, level, "about page incomplete", "missing", missing)
	}
	p.printBanner(term.Out)
	return p.serve(ctx)
}

// program is a server with everything it uses.
type program struct {
	settings       *settings
	log            *slog.Logger
	store          *store.Store
	listener       net.Listener
	metrics        net.Listener // nil without metrics
	server         *http.Server
	health         health
	connections    atomic.Int64
	closing        atomic.Bool // responses close their connection
	access         *access
	executor       *graph.Executor
	graphql        *graphql.Handler
	saved          *saved.Queries
	files          *files.Archive
	cache          *cache.Cache
	services       *services
	purger         *edge.Purger // nil without a cache in front
	statusRecorder *status.Recorder
	telemetry      telemetry
}

// newProgram opens the database and listens. It waits while an import or a migration
// locks the database.
func newProgram(ctx context.Context, s *settings, log *slog.Logger, traces *tracing.Tracing, fillDemo bool) (*program, error) {
	for {
		p, err := openProgram(ctx, s, log, traces, fillDemo)
		if !store.IsBusy(err) {
			return p, err
		}
		log.InfoContext(ctx, "waiting for another import or migration to finish")
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(busyRetry):
		}
	}
}

// busyRetry is the time between attempts to open a locked database.
const busyRetry = time.Second

func openProgram(ctx context.Context, s *settings, log *slog.Logger, traces *tracing.Tracing, fillDemo bool) (*program, error) {
	telemetry := newTelemetry(s, traces)
	db, err := commands.OpenMigrated(ctx, store.Config{DatabaseURL: s.DatabaseURL, DataDir: s.DataDir, OnStatement: telemetry.statements()})
	if err != nil {
		return nil, err
	}
	p := &program{settings: s, log: log, telemetry: telemetry, store: db, health: health{store: db, log: log}, statusRecorder: status.NewRecorder(db, log)}
	p.files = files.NewArchive(db, s.filesFolder(), int64(s.FilesMB)<<20, log)
	if err := p.open(ctx, fillDemo); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// open creates everything that needs the database. With fillDemo, it first
// publishes the demo catalog if the database is empty.
func (p *program) open(ctx context.Context, fillDemo bool) (err error) {
	s := p.settings
	release, err := p.store.CurrentRelease(ctx)
	if err == nil && fillDemo {
		if err = publishDemo(ctx, p.store, release); err == nil {
			release, err = p.store.CurrentRelease(ctx)
		}
	}
	if err != nil {
		return err
	}
	p.health.release.Store(cmp.Or(release, &ent.Release{}))
	secret, err := p.store.Secret(ctx, "etag")
	if err != nil {
		return err
	}
	p.cache = cache.New(int64(s.CacheMB)<<20, secret, p.log)
	if release != nil {
		p.cache.Publish(release.ID)
	}
	if err := p.openPurger(ctx); err != nil {
		return err
	}
	if p.access, err = newAccess(ctx, s, p.store, p.log); err != nil {
		return err
	}
	p.telemetry.watchQuota(p.access)
	if p.listener, err = listen(s.Listen); err != nil {
		return err
	}
	if s.MetricsListen != "" {
		if p.metrics, err = listen(s.MetricsListen); err != nil {
			return err
		}
	}
	s.setAddresses(p.listener.Addr().(*net.TCPAddr))
	if p.services, err = newServices(ctx, s, p.store, p.access, p.log); err != nil {
		return err
	}
	handler, err := p.handler()
	if err != nil {
		return err
	}
	p.server = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ConnState:         p.countConnection,
		ConnContext:       middleware.ConnContext,
		ErrorLog:          slog.NewLogLogger(p.log.Handler(), slog.LevelWarn),
	}
	return nil
}

// publishDemo publishes each edition of the demo catalog as a release, oldest
// first. It leaves databases with any other catalog unchanged.
func publishDemo(ctx context.Context, db *store.Store, release *ent.Release) error {
	editions, err := demo.Editions()
	if err != nil {
		return err
	}
	if release != nil {
		if release.ID >= len(editions) || editions[release.ID-1].Date != release.FeedDate {
			return nil
		}
		// An earlier start may have been interrupted. The date alone does not
		// prove that this is the demo catalog.
		var stored bytes.Buffer
		if err := feed.Export(ctx, db, &stored, 0); err != nil || !bytes.Equal(stored.Bytes(), editions[release.ID-1].Feed) {
			return err
		}
		editions = editions[release.ID:]
	}
	for i, edition := range editions {
		var opts feed.Options
		if i < len(editions)-1 { // the last one is published now
			if opts.PublishedAt, err = time.Parse(time.DateOnly, edition.Date); err != nil {
				return err
			}
		}
		_, err := feed.Import(ctx, db, bytes.NewReader(edition.Feed), opts)
		var older *feed.ImplausibleError
		if errors.As(err, &older) {
			continue // another server that starts at the same time is ahead
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *program) close() {
	for _, listener := range []net.Listener{p.listener, p.metrics} {
		if listener != nil {
			_ = listener.Close()
		}
	}
	p.files.Close()
	_ = p.store.Close()
}

// handler returns the routes behind the middleware chain. The order of the
// chain is the security policy.
func (p *program) handler() (http.Handler, error) {
	p.executor = graph.NewExecutor(graph.Config{
		Catalog: p.store, Credit: p.settings.credit(), Limits: document.Limits(p.settings.GraphQL), Log: p.log, Cache: p.cache, Trace: p.telemetry.operations(),
		Healthy: func() bool { return p.statusRecorder.HealthyFor(2 * p.settings.GraphQL.Time) }, Tools: func() int { return p.health.release.Load().ToolsTotal },
	})
	p.health.loaded = p.executor.Loaded
	var err error
	p.saved, err = saved.New(saved.Config{
		Service: p.settings.rest(), Store: p.store, Executor: p.executor, Cache: p.cache, Mail: p.services.mail, Log: p.log, BuiltIn: panels(),
	})
	if err != nil {
		return nil, err
	}
	p.services.portal.Queries = p.saved
	routes, err := p.routes()
	if err != nil {
		return nil, err
	}
	p.access.recordCalls(routes.label)
	observers := p.telemetry.observers(routes.label)
	return middleware.Chain(routes,
		p.closeWhenDraining,                                          // outermost, so that every response of a draining server closes its connection
		middleware.RequestID,                                         // before the log, which includes the ID
		p.telemetry.middleware(routes.label),                         // before the log, which includes the trace ID
		middleware.Log(p.log, observers...),                          // outside Recover, so that panics are logged with a status too
		middleware.Recover(p.log),                                    // outside everything that can panic
		p.addEdgeKeys,                                                // outside everything that sends a public response
		page.Localize,                                                // before everything that uses the path, which no longer includes the language
		middleware.When(allowsCORS, middleware.CORS),                 // before any rejection, so that browsers can read the error
		middleware.When(isRoot, p.linkDescriptions),                  // before any handler, which may add links of its own
		middleware.When(opensGraphQL, showExplorer),                  // before the quota, because it is not a request for data
		middleware.When(identifiesCaller, p.access.keyring.Identify), // before the quota, which depends on the caller
		middleware.When(identifiesCaller, p.saved.IdentifyToken),     // after keys, which take precedence
		middleware.When(usesQuota, p.access.quota.Count),             // before any work, so that over-quota requests cost nothing
		middleware.LimitBody(maxBody, p.writeError),                  // after the quota, so that rejected requests count too
		middleware.When(hasDeadline, middleware.Deadline(responseTimeout, p.log, p.writeError)), // innermost, so that it covers only the handler
	), nil
}

// serve serves requests until ctx ends, then drains those in flight.
func (p *program) serve(ctx context.Context) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { p.executor.Follow(background, p.publish) })
	running.Go(func() { p.access.run(background) })
	running.Go(func() { p.statusRecorder.Run(background) })
	running.Go(func() { p.services.run(background) })
	running.Go(func() { p.saved.Run(background) })
	running.Go(func() { p.purger.Run(background) })
	if p.metrics != nil {
		p.addMetrics(p.telemetry.metrics)
		running.Go(func() { p.serveMetrics(background, p.telemetry.metrics) })
	}
	defer func() {
		stop()
		done := make(chan struct{})
		go func() {
			defer close(done)
			running.Wait()
		}()
		select {
		case <-done:
		case <-time.After(backgroundTimeout): // a frozen database must not block the shutdown
		}
	}()

	failed := make(chan error, 1)
	go func() { failed <- p.server.Serve(middleware.Listener{Listener: p.listener}) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving failed: %w", err)
	case <-ctx.Done():
	}
	return p.drain()
}

// printBanner prints the addresses of the server.
func (p *program) printBanner(w io.Writer) {
	catalog := "no catalog yet (import one with palmares import)"
	if release := p.health.release.Load(); release.ID > 0 {
		catalog = fmt.Sprintf("release %d of %s", release.ID, release.FeedDate)
	}
	fmt.Fprintf(w, "palmares %s is serving %s from %s\n\n", version, catalog, p.store.Describe())
	for _, address := range []struct{ path, description string }{
		{"/", "website"},
		{"/api/v1/tools", "REST API"},
		{"/api/v1/openapi.json", "OpenAPI document"},
		{"/graphql", "GraphQL API"},
		{mcp.Path, "MCP server for AI agents"},
		{"/feeds/changes.atom", "Atom feed of changes"},
		{"/guides", "guides"},
		{"/docs", "API reference"},
		{"/explorer", "GraphQL explorer"},
		{"/files/", "Parquet and SQLite files"},
		{"/account", "sign in and create API keys"},
		{"/healthz", "liveness probe"},
		{"/readyz", "readiness probe"},
	} {
		fmt.Fprintf(w, "  %s%-22s %s\n", p.settings.PublicURL, address.path, address.description)
	}
	fmt.Fprintln(w)
}
