package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/notify/atom"
	"palmares/rest"
)

// gate says who is calling and counts their requests, for everything that
// serves the catalog's data.
type gate struct {
	keyring *auth.Keyring
	ledger  *quota.Ledger
	redis   *quota.Redis // nil where the process counts alone
	quota   *quota.Gate
	proxies []netip.Prefix
	log     *slog.Logger
}

func newGate(ctx context.Context, s *settings, db *store.Store, log *slog.Logger) (*gate, error) {
	counter := quota.NewCounter()
	g := &gate{
		keyring: auth.NewKeyring(db, log),
		ledger:  quota.NewLedger(db, counter, s.RedisURL == "", auth.AddFormerUsage, log),
		proxies: s.proxies,
		log:     log,
	}
	g.quota = &quota.Gate{Store: counter, Caller: g.caller, Now: time.Now}
	if s.RedisURL != "" {
		var err error
		if g.redis, err = quota.NewRedis(s.RedisURL, counter, log); err != nil {
			return nil, fmt.Errorf("REDIS_URL: %w", err)
		}
		g.quota.Store = g.redis
	}
	if err := g.ledger.Load(ctx, quota.DayOf(time.Now())); err != nil {
		return nil, fmt.Errorf("today's counts cannot be read: %w", err)
	}
	return g, nil
}

// caller returns whose quota a request counts against: the account of its key,
// or the address it comes from.
func (g *gate) caller(r *http.Request) quota.Caller {
	caller := auth.CallerFrom(r.Context())
	terms := caller.Plan.Terms()
	counted := quota.Caller{
		Subject: quota.Account(caller.Account), Limit: terms.DailyQuota, Tier: terms.Tier,
		Carried: caller.Carried, CarriedDay: caller.CarriedDay,
	}
	if caller.Key == "" {
		counted.Subject = quota.Address(quota.ClientAddress(r, g.proxies))
	}
	return counted
}

// counted are the requests that a quota is about: the catalog's data, not its
// description, nor pages and health.
func counted(r *http.Request) bool {
	path := r.URL.Path
	return path == "/graphql" || strings.HasPrefix(path, "/api/embeddings/") ||
		strings.HasPrefix(path, "/api/v1/") && path != rest.DocumentPath
}

// shared is what pages of other origins may read: all but the pages that are
// somebody's own.
func shared(r *http.Request) bool {
	path := r.URL.Path
	return path == "/api" || strings.HasPrefix(path, "/api/") || path == "/graphql" || path == "/healthz" || path == "/readyz" ||
		strings.HasPrefix(path, atom.Path) || strings.HasPrefix(path, journal.SchemasPath)
}

// streams counts streams by the callers that requests are counted by, and ends
// them with their keys.
func (g *gate) streams() graph.StreamConfig {
	return graph.StreamConfig{
		Network: func(r *http.Request) string { return quota.Network(quota.ClientAddress(r, g.proxies)) },
		Recheck: g.keyring.Recheck,
	}
}

// usedEvery is how often the uses of keys are written down.
const usedEvery = 5 * time.Second

// run writes down counts and uses until ctx ends, and then what is left.
func (g *gate) run(ctx context.Context) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		g.ledger.Run(ctx)
	}()
	ticker := time.NewTicker(usedEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
		if err := g.keyring.WriteUsed(context.WithoutCancel(ctx)); err != nil {
			g.log.Warn("when keys were used is not written down yet", "cause", err)
		}
	}
	<-written
	if g.redis != nil {
		_ = g.redis.Close()
	}
}
