package main

import (
	"cmp"
	"context"
	"log/slog"
	"os/signal"
	"sync"
	"syscall"

	"palmares/cmd/palmares/commands"
	"palmares/ent"
	"palmares/graph"
	"palmares/graph/document"
	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/store"
	"palmares/internal/transport/mcp"
	"palmares/internal/web/guide"
)

func newMCP(s *settings, executor *graph.Executor, responses *cache.Cache, a *access, log *slog.Logger) (*mcp.Server, error) {
	guides, err := guide.Read(guide.Config{Service: s.service()}, lang.English)
	if err != nil {
		return nil, err
	}
	cfg := mcp.Config{
		Executor: executor, Cache: responses, PublicURL: s.PublicURL, ServiceName: s.ServiceName, ServiceURL: s.ServiceURL, Credit: s.credit(),
		Version: version, Schema: schemaText(), MaxBody: s.GraphQL.Body, Log: log,
	}
	if a != nil {
		cfg.Count, cfg.Limit, cfg.Challenge = a.quota.Take, a.allowMessages, a.keyring.Challenge
	}
	for _, g := range guides {
		cfg.Guides = append(cfg.Guides, mcp.Guide{Name: g.Name, Title: g.Title, Summary: g.Summary, Markdown: g.Markdown})
	}
	return mcp.New(cfg)
}

type mcpCommand struct{}

// Run serves one client over standard input and output, which carry nothing but
// messages of the protocol. It needs no network.
func (mcpCommand) Run(ctx context.Context, s *settings, db *store.Store, term commands.Terminal) error {
	log := slog.New(slog.NewTextHandler(term.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if err := s.resolveAddresses(); err != nil {
		return err
	}
	release, err := db.CurrentRelease(ctx)
	if err != nil {
		return err
	}
	responses := cache.New(int64(s.CacheMB)<<20, nil, log)
	if release != nil {
		responses.Publish(release.ID)
	}
	executor := graph.NewExecutor(graph.Config{Catalog: db, Credit: s.credit(), Limits: document.Limits(s.GraphQL), Log: log, Cache: responses})
	server, err := newMCP(s, executor, responses, nil, log)
	if err != nil {
		return err
	}
	background, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		last := cmp.Or(release, &ent.Release{})
		executor.Follow(background, func(release *ent.Release) bool {
			release = cmp.Or(release, &ent.Release{})
			if !store.SameRelease(last, release) && release.ID <= last.ID { // restored or pruned, as for a server
				responses.Restart(release.ID)
			}
			responses.Publish(release.ID)
			last = release
			return true
		})
	})
	defer running.Wait()
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // otherwise a client that closes standard output kills the process
	return server.Run(ctx, term.In, term.Out)
}
