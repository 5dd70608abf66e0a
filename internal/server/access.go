package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"palmares/auth"
	"palmares/internal/account/oauth"
	"palmares/internal/core/client"
	"palmares/internal/core/clock"
	"palmares/internal/core/ledger"
	"palmares/internal/core/limiter"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/transport/downloads"
	"palmares/internal/transport/graphql"
	"palmares/internal/transport/mcp"
	"palmares/internal/transport/saved"
	"palmares/rest"
)

// access identifies callers and enforces their quotas.
type access struct {
	keyring   *auth.Keyring
	challenge func(*http.Request) string // nil if applications cannot connect
	ledger    *ledger.Ledger
	redis     *quota.Redis // nil if this server counts locally
	quota     *quota.Gate
	// messages are those of MCP that the quota does not count. Hosted agents share
	// addresses, so the limit is high.
	messages *limiter.Rate[quota.Subject]
	proxies  proxies
	log      *slog.Logger
}

// proxies are those whose X-Forwarded-For header is trusted.
type proxies []netip.Prefix

func newAccess(ctx context.Context, cfg Config, db *store.Store, routes *routes, t telemetry) (*access, error) {
	rules := auth.Rules{
		AllowBasic: func(r *http.Request) bool { return routeOf(r).basic },
		SavedQuery: saved.Addressed,
		IsDownload: func(r *http.Request) bool { return rest.IsDownload(r) || downloads.RequiresKey(r.URL.Path) },
	}
	if cfg.OAuthDisabled() == "" {
		rules.Accepts, rules.Challenge = cfg.resources().Accepts, cfg.resources().Challenge
	}
	counter := quota.NewCounter()
	stored := ledger.New(db, counter, cfg.RedisURL == "", cfg.Log)
	if err := stored.Load(ctx, quota.DayOf(cfg.Now())); err != nil {
		return nil, fmt.Errorf("load today's request counts: %w", err)
	}
	var counts quota.Store = counter
	var redis *quota.Redis
	if cfg.RedisURL != "" {
		var err error
		if redis, err = quota.NewRedis(cfg.RedisURL, counter, cfg.Log); err != nil {
			return nil, fmt.Errorf("REDIS_URL: %w", err)
		}
		counts = t.watchQuota(redis)
	}
	callers := proxies(cfg.Proxies)
	advice := fmt.Sprintf("Sign in, or send the key of a free account, which has %d requests a day: %s/account.", auth.Developer.Terms().DailyQuota, cfg.PublicURL)
	return &access{
		keyring: auth.NewKeyring(db, cfg.Log, rules), challenge: rules.Challenge, ledger: stored, redis: redis,
		quota: &quota.Gate{
			Store: counts, Caller: func(r *http.Request) quota.Caller {
				caller := callers.caller(r)
				if caller.Tier == "" {
					caller.Advice = advice
				}
				return caller
			}, Now: cfg.Now, Once: downloads.Counted, Record: record(stored, routes),
			Free: isFreeIfCached, FreeRate: &limiter.Rate[quota.Subject]{Limit: 10, Window: time.Second, Now: cfg.Now},
		},
		messages: &limiter.Rate[quota.Subject]{Limit: 1_000, Now: cfg.Now},
		proxies:  callers, log: cfg.Log,
	}, nil
}

// isFreeIfCached reports whether a response from the cache is free: that of a saved query
// for a caller without an account, whose address thousands may share.
func isFreeIfCached(r *http.Request) bool {
	return routeOf(r).pays == dataOrPage && auth.CallerFrom(r.Context()).Account == 0
}

// resources are what access tokens are for.
func (c Config) resources() oauth.Resources {
	return oauth.Resources{PublicURL: c.PublicURL, MCPPath: mcp.Path}
}

// caller returns whose quota a request counts against: the account of its key,
// or the address it comes from.
func (p proxies) caller(r *http.Request) quota.Caller {
	caller := auth.CallerFrom(r.Context())
	terms := caller.Plan.Terms()
	counted := quota.Caller{Subject: caller.Subject, Limit: terms.DailyQuota, Tier: terms.Tier}
	if caller.Key == "" {
		counted.Subject = quota.Address(client.Address(r, p))
	}
	return counted
}

// allowMessage reports whether the caller may send another message of MCP.
func (a *access) allowMessage(r *http.Request) bool {
	return a.messages.Take(a.proxies.caller(r).Subject, 1)
}

// record returns a function that counts the requests of accounts by key and endpoint.
func record(counts *ledger.Ledger, routes *routes) func(*http.Request, quota.Day, int) {
	return func(r *http.Request, day quota.Day, n int) {
		caller := auth.CallerFrom(r.Context())
		if caller.Account == 0 {
			return
		}
		if caller.Browser {
			caller.Key = "" // each session has its own, which users do not know
		}
		if caller.Application != "" {
			caller.Key = caller.Application // its tokens change every hour
		}
		// The account pages pass requests for downloads on, with another path.
		counts.Add(ledger.Call{Day: day, Subject: caller.Subject, Key: caller.Key, Endpoint: routes.match(r).label}, n)
	}
}

// streams configures streams: they are limited per network, like requests, and end
// when their key is revoked.
func (a *access) streams() graphql.StreamConfig {
	return graphql.StreamConfig{
		Network: func(r *http.Request) string { return client.Network(client.Address(r, a.proxies)) },
		Recheck: a.keyring.Recheck,
	}
}

// keyUseInterval is how often the times of last use of keys are saved.
const keyUseInterval = 5 * time.Second

// run saves counts and key uses until ctx ends, and a last time when it ends.
func (a *access) run(ctx context.Context) {
	var counts sync.WaitGroup
	counts.Go(func() { a.ledger.Run(ctx) })
	saveKeyUses := func() {
		if err := a.keyring.SaveLastUsed(context.WithoutCancel(ctx)); err != nil {
			a.log.Warn("saving key uses failed", "cause", err)
		}
	}
	clock.Every(ctx, keyUseInterval, saveKeyUses)
	saveKeyUses()
	counts.Wait()
	if a.redis != nil {
		_ = a.redis.Close()
	}
}
