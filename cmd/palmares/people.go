package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"palmares/ent"
	"palmares/ent/tool"
	"palmares/internal/account/billing"
	"palmares/internal/account/portal"
	"palmares/internal/core/clock"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
	"palmares/internal/notify/webhook"
)

// people is what the server has for persons, not programs: their mail, their
// pages and their subscriptions.
type people struct {
	store   *store.Store
	mail    *mail.Mailer
	billing *billing.Billing
	hooks   *webhook.Webhooks
	portal  *portal.Portal
	log     *slog.Logger
}

func newPeople(s *settings, db *store.Store, g *gate, log *slog.Logger) (*people, error) {
	if s.Stripe.SecretKey != "" && s.Stripe.WebhookSecret == "" {
		// Whatever claims to be Stripe would have to be believed.
		return nil, errors.New("STRIPE_WEBHOOK_SECRET: is missing, beside STRIPE_SECRET_KEY")
	}
	mailer, err := newMailer(s, log)
	if err != nil {
		return nil, err
	}
	p := &people{store: db, mail: mailer, billing: newBilling(s, db, mailer, log), hooks: newWebhooks(s, db, mailer, log), log: log}
	p.portal = portal.New(portal.Config{
		PublicURL:   s.PublicURL,
		ServiceName: s.ServiceName,
		Credit:      s.credit(),
		Closed:      mailer.Prints() && !isPrivate(s.PublicURL),
		Trusted:     s.proxies,
		Store:       db,
		Keyring:     g.keyring,
		Mail:        mailer,
		Billing:     p.billing,
		Hooks:       p.hooks,
		Example:     p.example,
		Log:         log,
	})
	return p, nil
}

func newMailer(s *settings, log *slog.Logger) (*mail.Mailer, error) {
	mailer, err := mail.New(mail.Config{URL: s.Mail.URL, From: cmp.Or(s.Mail.From, s.defaultSender()), Log: log})
	if err != nil {
		return nil, fmt.Errorf("SMTP_URL or MAIL_FROM: %w", err)
	}
	return mailer, nil
}

// defaultSender is the service at its own host.
func (s *settings) defaultSender() string {
	host := "localhost"
	if u, err := url.Parse(s.PublicURL); err == nil && u.Hostname() != "" {
		host = u.Hostname()
	}
	if net.ParseIP(host) != nil { // no address of mail
		host = "localhost"
	}
	return "palmares@" + host
}

func newBilling(s *settings, db *store.Store, mailer *mail.Mailer, log *slog.Logger) *billing.Billing {
	return billing.New(billing.Config{
		SecretKey: s.Stripe.SecretKey, WebhookSecret: s.Stripe.WebhookSecret, Price: s.Stripe.Price, APIBase: s.Stripe.APIBase,
		PublicURL: s.PublicURL, ServiceName: s.ServiceName, Store: db, Mail: mailer, Log: log,
	})
}

func newWebhooks(s *settings, db *store.Store, mailer *mail.Mailer, log *slog.Logger) *webhook.Webhooks {
	return webhook.New(webhook.Config{
		PublicURL: s.PublicURL, ServiceName: s.ServiceName, Store: db, Mail: mailer, Log: log, Loopback: s.listensOnLoopback() && isPrivate(s.PublicURL), // not where a proxy lets everybody in
	})
}

// isPrivate tells whether an address is one that only its own machine or
// network can reach: who reads the log there may also sign in.
func isPrivate(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := u.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap()
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !strings.Contains(host, ".") {
		return true // a name of the own network
	}
	for _, suffix := range []string{".localhost", ".local", ".internal", ".test", ".home.arpa"} {
		if strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}

// register adds the pages, and where Stripe's events come to.
func (p *people) register(mux *http.ServeMux) {
	for _, path := range portal.Paths {
		mux.Handle(path, p.portal)
	}
	mux.Handle("POST "+billing.EventsPath, p.billing)
}

// example is a document that only a key opens, where there is one.
func (p *people) example(ctx context.Context) string {
	slug, err := p.store.Current().Tool.Query().Where(tool.InEmbeddings(true)).Order(ent.Asc(tool.FieldID)).Limit(1).Select(tool.FieldID).String(ctx)
	if err != nil {
		return "/api/v1/tools"
	}
	return "/api/embeddings/" + slug
}

// run sends mail, keeps subscriptions in line and tidies up until ctx ends.
func (p *people) run(ctx context.Context) {
	var working sync.WaitGroup
	defer working.Wait()
	working.Go(func() { p.mail.Run(ctx) })
	working.Go(func() { p.billing.Run(ctx) })
	working.Go(func() { p.hooks.Run(ctx) })
	ticker := time.NewTicker(tidyEvery)
	defer ticker.Stop()
	steady := clock.NewSteady()
	for {
		if now, trusted := steady.Now(); trusted {
			p.tidy(ctx, now)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
