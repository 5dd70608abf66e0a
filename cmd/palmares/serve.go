package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"palmares/graph"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/cache"
	"palmares/internal/core/middleware"
	"palmares/internal/core/store"
	"palmares/internal/notify/atom"
	"palmares/internal/ops/tracing"
	"palmares/internal/web/status"
	"palmares/rest"
)

const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = 60 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
)

type serveCommand struct {
	Demo bool `help:"Fill an empty database with the demo catalog."`
}

// Run serves until ctx ends and every request in flight is answered.
func (c *serveCommand) Run(ctx context.Context, s *settings, term terminal) error {
	log, lines := newLogger(term.err)
	if lines != nil {
		defer lines.Flush()
	}
	traces, err := tracing.New(ctx, version, log)
	if err != nil {
		return err
	}
	if traces != nil {
		defer traces.Close()
		log = tracing.InLog(log)
	}
	slog.SetDefault(log) // for what net/http says by itself
	useMemory(s)
	p, err := newProgram(ctx, s, log, traces, c.Demo)
	if err != nil {
		return err
	}
	defer p.close()
	p.printAddresses(term.out)
	return p.serve(ctx)
}

// program is the server as a value: what the tests start is what ships.
type program struct {
	settings *settings
	log      *slog.Logger
	store    *store.Store
	listener net.Listener
	metrics  net.Listener // nil for none
	server   *http.Server
	health   health
	conns    connCounter
	closing  atomic.Bool // no more requests are wanted
	gate     *gate
	executor *graph.Executor
	graphql  *graph.Handler
	answers  *cache.Cache
	people   *people
	minutes  *status.Recorder
	watch    watch
}

// newProgram opens everything that serving needs. Its address is then known.
func newProgram(ctx context.Context, s *settings, log *slog.Logger, traces *tracing.Tracing, fillDemo bool) (*program, error) {
	watch := newWatch(s, traces)
	db, err := migrated(ctx, store.Config{DatabaseURL: s.DatabaseURL, ReadURL: s.ReadURL, DataDir: s.DataDir, Watch: watch.statements()})
	if err != nil {
		return nil, err
	}
	p := &program{settings: s, log: log, watch: watch, store: db, health: health{store: db, log: log}, minutes: status.NewRecorder(db, log)}
	if err := p.open(ctx, fillDemo); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// open makes all that stands on the database.
func (p *program) open(ctx context.Context, fillDemo bool) (err error) {
	s := p.settings
	if fillDemo {
		if err := p.fillDemo(ctx); err != nil {
			return err
		}
	}
	release, err := p.store.CurrentRelease(ctx)
	if err != nil {
		return err
	}
	p.health.release.Store(release)
	secret, err := p.store.Secret(ctx, "etag")
	if err != nil {
		return err
	}
	p.answers = cache.New(int64(s.CacheMB)<<20, secret, p.log)
	if release != nil {
		p.answers.Publish(release.ID)
	}
	if p.gate, err = newGate(ctx, s, p.store, p.log); err != nil {
		return err
	}
	p.watch.counting(p.gate)
	if p.listener, err = listen(s.Listen); err != nil {
		return err
	}
	if s.MetricsListen != "" {
		if p.metrics, err = listen(s.MetricsListen); err != nil {
			return err
		}
	}
	s.servedAt(p.listener.Addr().(*net.TCPAddr))
	if p.people, err = newPeople(s, p.store, p.gate, p.log); err != nil {
		return err
	}
	handler, err := p.handler()
	if err != nil {
		return err
	}
	p.server = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         p.conns.track,
		ErrorLog:          slog.NewLogLogger(p.log.Handler(), slog.LevelWarn),
	}
	return nil
}

func (p *program) close() {
	for _, listener := range []net.Listener{p.listener, p.metrics} {
		if listener != nil {
			_ = listener.Close()
		}
	}
	_ = p.store.Close()
}

// fillDemo imports the demo catalog, unless there is a catalog already.
func (p *program) fillDemo(ctx context.Context) error {
	release, err := p.store.CurrentRelease(ctx)
	if err != nil || release != nil {
		return err
	}
	_, err = feed.Import(ctx, p.store, bytes.NewReader(demo.Catalog), feed.Options{})
	return err
}

// handler is the way every request takes. The order is the policy.
func (p *program) handler() (http.Handler, error) {
	p.executor = graph.NewExecutor(graph.Config{
		Catalog: p.store, Credit: p.settings.credit(), Limits: p.settings.graphLimits(), Log: p.log, Cache: p.answers, Trace: p.watch.operations(),
		Healthy: p.minutes.Healthy, Tools: p.health.tools,
	})
	api, err := rest.NewHandler(p.settings.rest(), p.executor, p.answers)
	if err != nil {
		return nil, err
	}
	pages := http.NewServeMux()
	pages.HandleFunc("GET /healthz", p.health.alive)
	pages.HandleFunc("GET /readyz", p.health.ready)
	p.graphql = graph.NewHandler(p.executor, p.answers)
	p.graphql.ConfigureStreams(p.gate.streams())
	pages.Handle("/graphql", p.graphql)
	pages.Handle(journal.SchemasPath, journal.SchemaHandler())
	pages.Handle(atom.Path, atom.New(atom.Config{
		Store: p.store, Answers: p.answers, PublicURL: p.settings.PublicURL, ServiceName: p.settings.ServiceName, Credit: p.settings.credit(), Log: p.log,
	}))
	p.people.register(pages)
	if err := p.registerPages(pages); err != nil {
		return nil, err
	}
	p.registerWorkbench(pages, api)
	if err := p.registerGuides(pages, api); err != nil {
		return nil, err
	}

	observers := p.watch.observers()
	return middleware.Chain(apart(api, pages),
		p.closeWhenDraining,                               // first, so that every answer of a server that ends says so
		middleware.RequestID,                              // before the log, which tells it
		p.watch.requests,                                  // counts and traces, if anybody wants either; before the log, which tells the trace
		middleware.Log(p.log, observers...),               // outside of recover, so that a panic has its line, too
		middleware.Recover(p.log),                         // outside of all that could panic
		middleware.When(shared, middleware.OpenToAll),     // before anything is refused: a browser must be able to read why
		middleware.When(counted, p.gate.keyring.Identify), // before the count, which is each caller's own
		middleware.When(counted, p.gate.quota.Count),      // before any work: who has had enough costs nothing
		p.bound, // last: a request that is refused for its size or time is counted, too
	), nil
}

// apart sends paths of the API to it as they came. The mux would clean them
// up first, and send callers elsewhere with answers that are no JSON.
func apart(api, pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api" || strings.HasPrefix(r.URL.Path, "/api/") {
			api.ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
}

// serve answers requests until ctx ends, and then those still in flight.
func (p *program) serve(ctx context.Context) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var working sync.WaitGroup
	working.Go(func() { p.store.Watch(background, p.log, p.publish) })
	working.Go(func() { p.gate.run(background) })
	working.Go(func() { p.minutes.Run(background) })
	working.Go(func() { p.people.run(background) })
	if p.metrics != nil {
		p.addMetrics(p.watch.metrics)
		working.Go(func() { p.serveMetrics(background, p.watch.metrics) })
	}
	defer func() {
		stop()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			working.Wait()
		}()
		select {
		case <-ended:
		case <-time.After(backgroundTimeout): // a frozen database must not keep us
		}
	}()

	failed := make(chan error, 1)
	go func() { failed <- p.server.Serve(p.listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving failed: %w", err)
	case <-ctx.Done():
	}
	return p.drain()
}
