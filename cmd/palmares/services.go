package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/tool"
	"palmares/graph"
	"palmares/graph/document"
	"palmares/internal/account/billing"
	"palmares/internal/account/oauth"
	"palmares/internal/account/portal"
	"palmares/internal/core/cache"
	"palmares/internal/core/clock"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
	"palmares/internal/notify/webhook"
	"palmares/internal/transport/mcp"
	"palmares/internal/transport/saved"
)

// services are the parts of the server for account holders: email, billing, webhooks
// and the account pages.
type services struct {
	store   *store.Store
	mail    *mail.Mailer
	billing *billing.Billing
	hooks   *webhook.Webhooks
	portal  *portal.Portal
	oauth   *oauth.Server // nil if it is disabled
	log     *slog.Logger
}

func newServices(ctx context.Context, s *settings, db *store.Store, a *access, log *slog.Logger) (*services, error) {
	if s.Stripe.SecretKey != "" && s.Stripe.WebhookSecret == "" { // anyone could send events
		return nil, errors.New("STRIPE_WEBHOOK_SECRET: required with STRIPE_SECRET_KEY; palmares billing setup explains how to get it")
	}
	mailer, err := newMailer(s, log)
	if err != nil {
		return nil, err
	}
	v := &services{store: db, mail: mailer, billing: newBilling(s, db, mailer, log), hooks: newWebhooks(s, db, mailer, log), log: log}
	if s.oauthDisabled() == "" {
		v.oauth, err = oauth.New(ctx, oauth.Config{
			PublicURL: s.PublicURL, ServiceName: s.ServiceName, MCPPath: mcp.Path, Loopback: s.reachesLoopback(),
			TrustedProxies: s.proxies, Store: db, Keyring: a.keyring, Log: log,
		})
		if err != nil {
			return nil, err
		}
		a.keyring.Accepts, a.keyring.Challenge = v.oauth.Accepts, v.oauth.Challenge
	}
	v.portal = portal.New(portal.Config{
		Service:        s.service(),
		SignInDisabled: s.signInDisabled(),
		TrustedProxies: s.proxies,
		Store:          db,
		Keyring:        a.keyring,
		Mail:           mailer,
		Billing:        v.billing,
		Webhooks:       v.hooks,
		OAuth:          v.oauth,
		Count:          a.quota.Take,
		Example:        v.examplePath,
		Log:            log,
	})
	return v, nil
}

func newMailer(s *settings, log *slog.Logger) (*mail.Mailer, error) {
	mailer, err := mail.New(mail.Config{URL: s.Mail.URL, From: cmp.Or(s.Mail.From, s.defaultSender()), Log: log})
	if err != nil {
		return nil, fmt.Errorf("SMTP_URL or MAIL_FROM: %w", err)
	}
	return mailer, nil
}

func newBilling(s *settings, db *store.Store, mailer *mail.Mailer, log *slog.Logger) *billing.Billing {
	return billing.New(billing.Config{
		SecretKey: s.Stripe.SecretKey, WebhookSecret: s.Stripe.WebhookSecret, Price: s.Stripe.Price, APIBase: s.Stripe.APIBase,
		PublicURL: s.PublicURL, ServiceName: s.ServiceName, Store: db, Mail: mailer, Log: log,
	})
}

func newWebhooks(s *settings, db *store.Store, mailer *mail.Mailer, log *slog.Logger) *webhook.Webhooks {
	return webhook.New(webhook.Config{
		PublicURL: s.PublicURL, ServiceName: s.ServiceName, Store: db, Mail: mailer, Log: log,
		Loopback: s.reachesLoopback(),
	})
}

// newQueries returns the saved queries for commands. They run as on a server
// with the same settings.
func newQueries(ctx context.Context, s *settings, db *store.Store, mailer *mail.Mailer, log *slog.Logger) (*saved.Queries, error) {
	if err := s.resolveAddresses(); err != nil {
		return nil, err
	}
	release, err := db.CurrentRelease(ctx)
	if err != nil {
		return nil, err
	}
	tools := 0
	if release != nil {
		tools = release.ToolsTotal
	}
	memory := cache.New(int64(s.CacheMB)<<20, nil, log)
	executor := graph.NewExecutor(graph.Config{
		Catalog: db, Credit: s.credit(), Limits: document.Limits(s.GraphQL), Log: log, Cache: memory, Tools: func() int { return tools },
	})
	return saved.New(saved.Config{Service: s.rest(), Store: db, Executor: executor, Cache: memory, Mail: mailer, Log: log})
}

// examplePath returns a path that requires a key, as an example on the account pages.
func (v *services) examplePath(ctx context.Context) string {
	slug, err := v.store.Read.Tool.Query().Where(tool.InEmbeddings(true)).Order(ent.Asc(tool.FieldID)).Limit(1).Select(tool.FieldID).String(ctx)
	if err != nil {
		return "/api/v1/tools"
	}
	return "/api/embeddings/" + slug
}

const (
	cleanupInterval = 10 * time.Minute
	// maxClockOffset is how far the clocks of the server and the database may differ:
	// with a wrong clock, cleanup would delete valid data.
	maxClockOffset = time.Hour
)

// run sends emails and webhooks, syncs subscriptions and deletes expired data
// until ctx ends.
func (v *services) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { v.mail.Run(ctx) })
	running.Go(func() { v.billing.Run(ctx) })
	running.Go(func() { v.hooks.Run(ctx) })
	steady := clock.NewSteady()
	steady.Now() // the clock is trusted hours after its first reading
	clock.Every(ctx, cleanupInterval, func() {
		if now, trusted := steady.Now(); trusted {
			v.cleanUp(ctx, now)
		}
	})
}

// cleanUp deletes data that has expired at the given time.
func (v *services) cleanUp(ctx context.Context, now time.Time) {
	offset, err := v.store.ClockOffset(ctx, now)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		v.log.Warn("reading the database clock failed", "cause", err)
		return
	case offset.Abs() > maxClockOffset:
		v.log.Warn("cleanup skipped: the clocks of server and database differ", "database_ahead_by", offset.Round(time.Second))
		return
	}
	for data, remove := range map[string]func() error{
		"sessions and messages": func() error { return auth.DeleteExpired(ctx, v.store, now) },
		"request counts":        func() error { return quota.Tidy(ctx, v.store, quota.DayOf(now)) },
		"usage by endpoint":     func() error { return quota.TidyBreakdown(ctx, v.store, quota.DayOf(now)) },
		"billing events":        func() error { return billing.DeleteOldEvents(ctx, v.store, now) },
		"webhook attempts":      func() error { return v.hooks.Tidy(ctx) },
	} {
		if err := remove(); err != nil && ctx.Err() == nil {
			v.log.Warn("cleanup failed", "data", data, "cause", err)
		}
	}
}
