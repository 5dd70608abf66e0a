// Package server assembles the program: everything that a server uses is made in
// order, and each part is complete when it is made. Start reading at New, which does so,
// then at table, which lists all paths with their policies, and at newChain, through which
// every request passes. Package servertest gives tests the same server in their process.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"palmares/auth"
	"palmares/graph"
	"palmares/graph/document"
	"palmares/internal/account/billing"
	"palmares/internal/account/oauth"
	"palmares/internal/account/portal"
	"palmares/internal/catalog/files"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/jsonschema"
	"palmares/internal/catalog/release"
	"palmares/internal/core/edge"
	"palmares/internal/core/middleware"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
	"palmares/internal/notify/outbox"
	"palmares/internal/notify/webhook"
	"palmares/internal/transport/downloads"
	"palmares/internal/transport/feeds"
	"palmares/internal/transport/graphql"
	"palmares/internal/transport/saved"
	"palmares/internal/web/apidocs"
	"palmares/internal/web/page"
	"palmares/internal/web/prose"
	"palmares/internal/web/queries"
	"palmares/internal/web/site"
	"palmares/internal/web/status"
	"palmares/internal/web/visitor"
	"palmares/rest"
)

const (
	// ReadHeaderTimeout is how long a client may take to send the header of a request.
	ReadHeaderTimeout = 5 * time.Second
	writeTimeout      = 60 * time.Second
)

// Server is a server with everything it uses.
type Server struct {
	cfg       Config
	routes    *routes
	telemetry telemetry
	store     *store.Store
	listener  net.Listener // nil to serve only through Handler
	metrics   net.Listener // nil without metrics
	engine    *engine
	archive   *files.Archive
	recorder  *status.Recorder
	purger    *edge.Purger // nil without a cache in front
	access    *access
	mail      *mail.Mailer
	billing   *billing.Billing
	webhooks  *webhook.Webhooks
	graphql   *graphql.Handler
	saved     *saved.Queries
	state     *state
	handler   http.Handler
}

// New opens the database and listens. It waits while an import or a migration locks the
// database.
func New(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Limits == (document.Limits{}) {
		cfg.Limits = graph.DefaultLimits
	}
	for {
		s, err := assemble(ctx, cfg)
		if !store.IsBusy(err) {
			return s, err
		}
		cfg.Log.WarnContext(ctx, "waiting for another import or migration to finish")
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(busyRetry):
		}
	}
}

const (
	// busyRetry is the time between attempts to open a locked database.
	busyRetry = time.Second
	// lockWait is shorter than pageDeadline, which does not end SQLite's wait for a lock.
	lockWait = 7 * time.Second
)

// assemble makes all parts of a server, each after those that it uses.
func assemble(ctx context.Context, cfg Config) (_ *Server, err error) {
	var opened []func()
	defer func() {
		if err != nil {
			for _, closeIt := range slices.Backward(opened) {
				closeIt()
			}
		}
	}()
	if cfg.Stripe.SecretKey != "" && cfg.Stripe.WebhookSecret == "" { // anyone could send events
		return nil, errors.New("STRIPE_WEBHOOK_SECRET: required with STRIPE_SECRET_KEY; palmares billing setup explains how to get it")
	}

	// The database and the catalog in it.
	telemetry := newTelemetry(cfg)
	db := cfg.Store
	if db == nil {
		cfg.Database.OnStatement = telemetry.statements()
		cfg.Database.LockWait = cmp.Or(cfg.Database.LockWait, lockWait)
		if db, err = Open(ctx, cfg.Database); err != nil {
			return nil, err
		}
		opened = append(opened, func() { _ = db.Close() })
	}
	if cfg.Demo {
		if err := publishDemo(ctx, db); err != nil {
			return nil, err
		}
	}
	var listener, metrics net.Listener
	if cfg.Listen != "" {
		if listener, err = listen(cfg.Listen); err != nil {
			return nil, err
		}
		opened = append(opened, func() { _ = listener.Close() })
		cfg = cfg.WithAddress(listener.Addr().(*net.TCPAddr))
	}
	if cfg.MetricsListen != "" {
		if metrics, err = listen(cfg.MetricsListen); err != nil {
			return nil, err
		}
		opened = append(opened, func() { _ = metrics.Close() })
	}
	secret, err := db.Secret(ctx, "etag")
	if err != nil {
		return nil, err
	}
	recorder := status.NewRecorder(db, cfg.Log)
	engine, err := newEngine(ctx, cfg, db, secret, hooks{
		trace: telemetry.operations(), healthy: func() bool { return recorder.HealthyFor(2 * cfg.Limits.Time) },
	})
	if err != nil {
		return nil, err
	}
	archive := files.NewArchive(db, cfg.filesFolder(), int64(cfg.FilesMB)<<20, cfg.Log)
	opened = append(opened, archive.Close)
	purger, err := newPurger(ctx, cfg, engine)
	if err != nil {
		return nil, err
	}

	// Accounts: who calls, and what they may use.
	routes := newRoutes(table(handlers{}))
	access, err := newAccess(ctx, cfg, db, routes, telemetry)
	if err != nil {
		return nil, err
	}
	mailer, err := cfg.Mailer()
	if err != nil {
		return nil, err
	}
	payments, webhooks := cfg.Billing(db), cfg.Webhooks(db, engine.executor.Newest)
	var connect *oauth.Server
	if cfg.OAuthDisabled() == "" {
		connect, err = oauth.New(ctx, oauth.Config{
			Resources: cfg.resources(), ServiceName: cfg.ServiceName, Loopback: cfg.reachesLoopback(),
			TrustedProxies: cfg.Proxies, Store: db, Keyring: access.keyring, Log: cfg.Log,
		})
		if err != nil {
			return nil, err
		}
	}

	// The ways to the executor.
	api, err := rest.NewHandler(cfg.REST(), engine.executor, engine.cache)
	if err != nil {
		return nil, err
	}
	graphQL := graphql.NewHandler(engine.executor, engine.cache, access.streams())
	saved, err := saved.New(saved.Config{
		Service: cfg.REST(), Store: db, Executor: engine.executor, Cache: engine.cache, Log: cfg.Log, BuiltIn: panels(), Downloads: api.Downloads,
	})
	if err != nil {
		return nil, err
	}
	fileDownloads := &downloads.Handler{Archive: archive, Newest: engine.executor.Newest, PublicURL: cfg.PublicURL, Log: cfg.Log}
	agents, err := engine.newMCP(access)
	if err != nil {
		return nil, err
	}
	registryEntry, err := agents.RegistryEntry()
	if err != nil {
		return nil, err
	}
	catalog, err := newAPICatalog(cfg.PublicURL)
	if err != nil {
		return nil, err
	}

	// Pages.
	facts, isDemo := cfg.Facts, cfg.Demo && cfg.Facts == prose.Facts{}
	if isDemo {
		facts = prose.DemoFacts
		facts.SecurityExpires = cfg.Now().AddDate(0, 6, 0).Format(time.DateOnly)
	}
	service, visitors := cfg.Service(), cmp.Or(cfg.Visitors, visitor.NewLimiter(cfg.Proxies))
	service.Demo, service.Publisher, service.Plans = isDemo, facts.Publisher, page.Plans{Anonymous: planOf(auth.Anonymous), Developer: planOf(auth.Developer), Pro: planOf(auth.Pro)}
	pages, err := site.New(site.Config{
		Service: service, Executor: engine.executor, Cache: engine.cache, Visitors: visitors,
		Suggested: routes.listed(func(l *listing) []string { return l.suggested }), SitemapPages: routes.listed(func(l *listing) []string { return l.sitemap }),
		Pattern: func(r *http.Request) string { return routes.match(r).pattern },
	})
	if err != nil {
		return nil, err
	}
	account := portal.New(portal.Config{
		Service: service, SignInDisabled: cfg.signInDisabled(), TrustedProxies: cfg.Proxies, Store: db, Keyring: access.keyring, Mail: mailer,
		Billing: payments, Webhooks: webhooks, Queries: saved, API: api, IsDownload: rest.IsDownload, Files: access.quota.Count(fileDownloads),
		OAuth: connect, Count: access.quota.Take, Charge: visitors.Charge, Preview: queries.Preview, Example: func(ctx context.Context) string { return examplePath(ctx, db) },
	})
	texts, err := prose.New(prose.Config{Service: service, ServiceURL: cfg.ServiceURL, Folder: cfg.PagesDir, Facts: facts, Demo: isDemo})
	if err != nil {
		return nil, err
	}
	docs := apidocs.New(apidocs.Config{
		Service: service, Schema: schemaText(), Document: rest.DocumentPath, Guides: texts.Guides(),
		Operations: api.Operations(), Objects: api.Objects(), Errors: rest.Errors(), Limits: limitsText(cfg.Limits), Samples: api.Samples,
		Cache: engine.cache, Explain: api.Explain, Run: engine.runPublic, Cost: engine.cost, Key: account.Key,
	})
	statusPage := status.NewPage(status.Config{Service: service, Store: db, DownSince: recorder.DownSince})

	// The mount table, and the chain in front of it.
	state := &state{}
	health := &health{store: db, log: cfg.Log, release: engine.release, loaded: engine.executor.Loaded, state: state}
	mounts := newRoutes(table(handlers{
		rest: api, graphql: graphQL, mcp: agents, saved: &queries.Pages{Service: service, Queries: saved, Visitors: visitors},
		files: fileDownloads, fileList: &apidocs.FilesPage{Service: service, Files: fileDownloads},
		feeds: feeds.New(feeds.Config{
			Store: db, Cache: engine.cache, PublicURL: cfg.PublicURL, ServiceName: cfg.ServiceName, Credit: cfg.Credit(), Log: cfg.Log,
			Visitors: visitors,
			Release: func(ctx context.Context, number int) (*release.Release, error) {
				return engine.executor.Release(ctx, graph.AsOf{Release: number})
			},
		}),
		eventSchemas: journal.SchemaHandler(), feedSchemas: jsonschema.FeedHandler(), catalog: catalog, registry: page.Handler(registryEntry.Write),
		site: pages, status: statusPage, account: account, oauth: connect, billing: payments,
		prose: texts, security: texts.Security(), docs: docs, icons: service.Icons(), health: health,
	}))
	chain := newChain(cfg, mounts, engine, access, account, visitors, recorder, telemetry, state)
	return &Server{
		cfg: cfg, routes: routes, telemetry: telemetry, store: db, listener: listener, metrics: metrics, engine: engine, archive: archive, recorder: recorder,
		purger: purger, access: access, mail: mailer, billing: payments, webhooks: webhooks, graphql: graphQL, saved: saved, state: state, handler: chain,
	}, nil
}

// Handler returns all paths behind the middleware chain.
func (s *Server) Handler() http.Handler { return s.handler }

// Run serves requests until ctx ends, then drains those in flight.
func (s *Server) Run(ctx context.Context) error {
	tuneMemory(s.cfg.CacheMB, 0)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, run := range []func(context.Context){
		func(ctx context.Context) { s.engine.executor.Follow(ctx, s.publish) },
		s.access.run, s.recorder.Run, s.mail.Run, outbox.New(s.store, s.mail, s.cfg.Log).Run, s.billing.Run, s.webhooks.Run, s.saved.Run, s.purger.Run,
		(&cleanup{s.store, s.webhooks, s.cfg.Log}).run,
	} {
		running.Go(func() { run(background) })
	}
	if s.metrics != nil {
		s.addMetrics(s.telemetry.metrics)
		running.Go(func() { s.serveMetrics(background, s.telemetry.metrics) })
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
	if s.listener == nil {
		<-ctx.Done()
		s.graphql.Close()
		return nil
	}
	server := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: ReadHeaderTimeout,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ConnState:         s.state.countConnection,
		ConnContext:       middleware.ConnContext,
		ErrorLog:          slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(middleware.Listener{Listener: s.listener}) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving failed: %w", err)
	case <-ctx.Done():
	}
	return s.drain(server)
}

// Refresh switches to the newest release in the database, which Run does when it notices
// one.
func (s *Server) Refresh(ctx context.Context) error {
	newest, err := s.engine.executor.Newest(ctx)
	if err == nil && !s.publish(newest.Info) {
		err = fmt.Errorf("cannot publish release %d", newest.Number())
	}
	return err
}

// Close closes the database and the listeners.
func (s *Server) Close() {
	for _, listener := range []net.Listener{s.listener, s.metrics} {
		if listener != nil {
			_ = listener.Close()
		}
	}
	s.archive.Close()
	if s.cfg.Store == nil {
		_ = s.store.Close()
	}
}

// PrintBanner prints the addresses of the server.
func (s *Server) PrintBanner(w io.Writer) {
	catalog := "no catalog yet (import one with palmares import)"
	if release := s.engine.release.Load(); release.ID > 0 {
		catalog = fmt.Sprintf("release %d of %s", release.ID, release.FeedDate)
	}
	fmt.Fprintf(w, "palmares %s is serving %s from %s\n\n", s.cfg.Version, catalog, s.store.Describe())
	for _, m := range s.routes.mounts {
		if m.banner != "" {
			fmt.Fprintf(w, "  %s%-22s %s\n", s.cfg.PublicURL, m.start(), m.banner)
		}
	}
	fmt.Fprintln(w)
}

// PublicURL returns where clients reach the server.
func (s *Server) PublicURL() string { return s.cfg.PublicURL }
