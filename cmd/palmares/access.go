package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"palmares/auth"
	"palmares/internal/account/billing"
	"palmares/internal/account/oauth"
	"palmares/internal/account/portal"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/schema"
	"palmares/internal/core/clock"
	"palmares/internal/core/negotiate"
	"palmares/internal/core/problem"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/notify/atom"
	"palmares/internal/transport/files"
	"palmares/internal/transport/graphql"
	"palmares/internal/transport/mcp"
	"palmares/internal/transport/saved"
	"palmares/internal/web/page"
	"palmares/rest"
)

// access identifies callers and enforces their quotas.
type access struct {
	keyring *auth.Keyring
	ledger  *quota.Ledger
	calls   *quota.Breakdown
	redis   *quota.Redis // nil if this server counts locally
	quota   *quota.Gate
	// messages are those of MCP that the quota does not count. Hosted agents share
	// addresses, so the limit is high.
	messages quota.Rate
	proxies  []netip.Prefix
	log      *slog.Logger
}

func newAccess(ctx context.Context, s *settings, db *store.Store, log *slog.Logger) (*access, error) {
	counter := quota.NewCounter()
	a := &access{
		keyring: auth.NewKeyring(db, log),
		ledger:  quota.NewLedger(db, counter, s.RedisURL == "", auth.AddFormerUsage, log),
		calls:   quota.NewBreakdown(db, log),
		proxies: s.proxies,
		log:     log,
	}
	a.keyring.AllowBasic = allowsBasic
	a.quota = &quota.Gate{Store: counter, Caller: a.caller, Now: time.Now, Once: files.Counted}
	a.messages.PerMinute, a.messages.Now = 1_000, time.Now
	if s.RedisURL != "" {
		var err error
		if a.redis, err = quota.NewRedis(s.RedisURL, counter, log); err != nil {
			return nil, fmt.Errorf("REDIS_URL: %w", err)
		}
		a.quota.Store = a.redis
	}
	if err := a.ledger.Load(ctx, quota.DayOf(time.Now())); err != nil {
		return nil, fmt.Errorf("load today's request counts: %w", err)
	}
	return a, nil
}

// caller returns whose quota a request counts against: the account of its key,
// or the address it comes from.
func (a *access) caller(r *http.Request) quota.Caller {
	caller := auth.CallerFrom(r.Context())
	terms := caller.Plan.Terms()
	counted := quota.Caller{
		Subject: quota.Account(caller.Account), Limit: terms.DailyQuota, Tier: terms.Tier,
		Carried: caller.Carried, CarriedDay: caller.CarriedDay,
	}
	if caller.Key == "" {
		counted.Subject = quota.Address(quota.ClientAddress(r, a.proxies))
	}
	return counted
}

// allowMessages reports whether the caller may send further messages of MCP.
func (a *access) allowMessages(r *http.Request, n int) bool {
	return a.messages.Take(a.caller(r).Subject, n)
}

// recordCalls counts the requests of accounts by key and endpoint.
func (a *access) recordCalls(label func(*http.Request) string) {
	a.quota.Record = func(r *http.Request, day quota.Day, n int) {
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
		a.calls.Add(quota.Call{Day: day, Account: caller.Account, Key: caller.Key, Endpoint: label(r)}, n)
	}
}

// usesQuota reports whether a request is for catalog data. Pages have a budget of CPU
// time instead.
func usesQuota(r *http.Request) bool {
	path := r.URL.Path
	return path == "/graphql" || path == "/api/embeddings" || strings.HasPrefix(path, "/api/embeddings/") ||
		strings.HasPrefix(path, "/api/v1/") && path != rest.DocumentPath && path != rest.YAMLPath ||
		inSaved(path) && !saved.IsDocument(path) && !saved.IsPage(r) || strings.HasPrefix(path, files.ReleasesPath)
}

// identifiesCaller reports whether the response to a request depends on its key.
// MCP counts the calls in a request itself.
func identifiesCaller(r *http.Request) bool {
	return usesQuota(r) || inSaved(r.URL.Path) || files.RequiresKey(r.URL.Path) || r.URL.Path == mcp.Path
}

// allowsBasic reports whether a request may send its key as the user name of HTTP Basic.
// Spreadsheets and dashboards read these paths, and some of them know nothing else.
func allowsBasic(r *http.Request) bool {
	return inAPI(r.URL.Path) || inSaved(r.URL.Path) || files.RequiresKey(r.URL.Path)
}

// allowsCORS reports whether web pages from other origins may read the response. They
// may read all of the API, but no account pages.
func allowsCORS(r *http.Request) bool {
	path := r.URL.Path
	return inAPI(path) || inSaved(path) || strings.HasPrefix(path, files.Path) || path == "/graphql" || path == "/healthz" || path == "/readyz" || path == catalogPath || oauth.AllowsCORS(path) ||
		strings.HasPrefix(path, atom.Path) || strings.HasSuffix(path, atom.ItemSuffix) || strings.HasPrefix(path, journal.SchemasPath) || strings.HasPrefix(path, schema.FeedPath)
}

// streams configures streams: they are limited per network, like requests, and end
// when their key is revoked.
func (a *access) streams() graphql.StreamConfig {
	return graphql.StreamConfig{
		Network: func(r *http.Request) string { return quota.Network(quota.ClientAddress(r, a.proxies)) },
		Recheck: a.keyring.Recheck,
	}
}

// keyUseInterval is how often the times of last use of keys are saved.
const keyUseInterval = 5 * time.Second

// run saves counts and key uses until ctx ends, and a last time when it ends.
func (a *access) run(ctx context.Context) {
	var counts sync.WaitGroup
	counts.Go(func() { a.ledger.Run(ctx) })
	counts.Go(func() { a.calls.Run(ctx) })
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

// responseTimeout is how long a page may take to start its response. Every
// client must get a response within 10 seconds, even if the database hangs.
const responseTimeout = 8 * time.Second

// hasDeadline reports whether responseTimeout applies. It does not apply to the API,
// which has its own limits and streams, or to assets, which are in memory.
func hasDeadline(r *http.Request) bool {
	path := r.URL.Path
	return path != "/graphql" && path != mcp.Path && !inAPI(path) && !files.RequiresKey(path) && (!inSaved(path) || saved.IsDocument(path) || saved.IsPage(r)) && !strings.HasPrefix(path, page.AssetsPath)
}

// maxBody returns the maximum body size of a request; -1 leaves the check to
// the handler.
func maxBody(r *http.Request) int64 {
	switch path := r.URL.Path; {
	case path == "/graphql" || path == mcp.Path:
		return -1 // their errors have their own format
	case path == billing.EventsPath:
		return billing.MaxEvent
	case inPortal(path):
		return portal.FormLimit(r)
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return 0
	}
	return -1 // the handler rejects the method
}

func inPortal(path string) bool {
	return slices.ContainsFunc(portal.Paths, func(known string) bool {
		return path == known || strings.HasSuffix(known, "/") && strings.HasPrefix(path, known)
	})
}

// writeError writes an HTML page to browsers and JSON to programs.
func (p *program) writeError(w http.ResponseWriter, r *http.Request, err error) {
	if inPortal(r.URL.Path) || negotiate.Named(r.Header["Accept"], "text/html") > 0 && !identifiesCaller(r) {
		p.services.portal.Refuse(w, r, err)
		return
	}
	problem.Refuse(w, r, err)
}
