package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/graph"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/search"
	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/store"
	"palmares/internal/transport/mcp"
	"palmares/internal/transport/saved"
	"palmares/internal/web/prose"
)

// Open opens a database and applies its pending migrations.
func Open(ctx context.Context, cfg store.Config) (*store.Store, error) {
	db, err := store.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if _, err := Migrate(ctx, db); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

// Migrate applies pending migrations and fills the search index, which only this program
// can do.
func Migrate(ctx context.Context, db *store.Store) ([]store.Migration, error) {
	applied, err := db.Migrate(ctx)
	if err != nil {
		return nil, err
	}
	return applied, search.Fill(ctx, db)
}

// publishDemo publishes each edition of the demo catalog as a release, oldest
// first. It leaves databases with any other catalog unchanged.
func publishDemo(ctx context.Context, db *store.Store) error {
	release, err := db.CurrentRelease(ctx)
	if err != nil {
		return err
	}
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
		if err := publish.Export(ctx, db, &stored, 0); err != nil || !bytes.Equal(stored.Bytes(), editions[release.ID-1].Feed) {
			return err
		}
		editions = editions[release.ID:]
	}
	for i, edition := range editions {
		var opts publish.Options
		if i < len(editions)-1 { // the last one is published now
			if opts.PublishedAt, err = time.Parse(time.DateOnly, edition.Date); err != nil {
				return err
			}
		}
		_, err := publish.Import(ctx, db, feed.NewLines(bytes.NewReader(edition.Feed)), opts)
		var older *publish.ImplausibleError
		if errors.As(err, &older) {
			continue // another server that starts at the same time is ahead
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// engine executes operations on the newest release. What is derived from a release is in
// its cache.
type engine struct {
	cfg      Config
	store    *store.Store
	cache    *cache.Cache
	executor *graph.Executor
	release  *atomic.Pointer[ent.Release] // being served; its ID is 0 before the first
}

// hooks connect an engine to a server; each may be nil.
type hooks struct {
	trace   func(context.Context, string) (context.Context, func(string))
	healthy func() bool
}

// newEngine returns the engine of a database. The secret is part of entity tags.
func newEngine(ctx context.Context, cfg Config, db *store.Store, secret []byte, h hooks) (*engine, error) {
	release, err := db.CurrentRelease(ctx)
	if err != nil {
		return nil, err
	}
	current := &atomic.Pointer[ent.Release]{}
	current.Store(cmp.Or(release, &ent.Release{}))
	responses := cache.New(int64(cfg.CacheMB)<<20, secret, cfg.Log)
	if release != nil {
		responses.Publish(release.ID)
	}
	executor := graph.NewExecutor(graph.Config{
		Catalog: db, Credit: cfg.Credit(), Limits: cfg.Limits, Log: cfg.Log, Cache: responses, Trace: h.trace, Healthy: h.healthy, CheckKey: auth.CheckEmbeddings,
		Tools: func() int { return current.Load().ToolsTotal },
	})
	return &engine{cfg, db, responses, executor, current}, nil
}

// publish switches to a release that is in memory, or to none if an empty backup was
// restored. It returns the release before, which may be the same.
func (e *engine) publish(release *ent.Release) (last *ent.Release, err error) {
	last = e.release.Load()
	switch {
	case store.SameRelease(last, release): // it was served from the start
		return last, nil
	case release.ID <= last.ID: // a backup was restored, or the history pruned
		e.cache.Restart(release.ID)
		e.executor.EndStreams()
	default:
		if err := e.cache.Renew(release.ID); err != nil {
			return last, err
		}
	}
	e.release.Store(release)
	return last, nil
}

// newMCP returns the tools for agents.
func (e *engine) newMCP(a *access) (*mcp.Server, error) {
	guides, err := prose.ReadGuides(e.cfg.Service(), lang.English)
	if err != nil {
		return nil, err
	}
	cfg := mcp.Config{
		Executor: e.executor, Cache: e.cache, PublicURL: e.cfg.PublicURL, ServiceName: e.cfg.ServiceName, ServiceURL: e.cfg.ServiceURL, Credit: e.cfg.Credit(),
		Version: e.cfg.Version, Schema: schemaText(), MaxBody: e.cfg.Limits.Body, Log: e.cfg.Log,
	}
	if a != nil {
		cfg.Count, cfg.Limit, cfg.Challenge = a.quota.Take, a.allowMessage, a.challenge
	}
	for _, g := range guides {
		cfg.Guides = append(cfg.Guides, mcp.Guide{Name: g.Name, Title: g.Title, Summary: g.Summary, Markdown: g.Markdown})
	}
	return mcp.New(cfg)
}

// ServeAgent serves the tools of a database to one agent until ctx or its messages end.
func ServeAgent(ctx context.Context, cfg Config, db *store.Store, in io.ReadCloser, out io.Writer) error {
	e, err := newEngine(ctx, cfg, db, nil, hooks{})
	if err != nil {
		return err
	}
	agents, err := e.newMCP(nil)
	if err != nil {
		return err
	}
	background, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		e.executor.Follow(background, func(release *ent.Release) bool {
			_, err := e.publish(cmp.Or(release, &ent.Release{}))
			return err == nil
		})
	})
	defer running.Wait()
	defer stop()
	return agents.Run(ctx, in, out)
}

// Queries returns the saved queries of a database. They run as on a server with the same
// settings.
func Queries(ctx context.Context, cfg Config, db *store.Store) (*saved.Queries, error) {
	e, err := newEngine(ctx, cfg, db, nil, hooks{})
	if err != nil {
		return nil, err
	}
	return saved.New(saved.Config{Service: cfg.REST(), Store: db, Executor: e.executor, Cache: e.cache, Log: cfg.Log})
}
