package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"palmares/graph/document"
	"palmares/internal/account/billing"
	"palmares/internal/catalog/release"
	"palmares/internal/core/edge"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
	"palmares/internal/notify/webhook"
	"palmares/internal/ops/tracing"
	"palmares/internal/web/page"
	"palmares/internal/web/prose"
	"palmares/internal/web/visitor"
	"palmares/rest"
)

// Config is what an operator chooses, and what a command adds to it.
type Config struct {
	Version       string // of the program
	Listen        string // host:port, or "" to serve only through Handler
	MetricsListen string // "" for no metrics
	DrainDelay    time.Duration

	Database store.Config
	Store    *store.Store // the database if it is open already; Close leaves it open
	RedisURL string       // "" to count requests in the process
	Files    string       // folder of the files of releases; by default, in the data directory
	FilesMB  int          // maximum size; with 0, files are written only when they are requested
	CacheMB  int

	PublicURL   string // where clients reach the server; by default, the listen address
	ServiceName string
	ServiceURL  string // in the credit line; by default, the public URL
	Contact     string // email address
	PagesDir    string // Markdown files that replace information pages, or ""
	Facts       prose.Facts
	Demo        bool // publish the demo catalog if the database is empty

	Proxies  []netip.Prefix // whose X-Forwarded-For header is trusted
	Edge     edge.Endpoint  // its URL is empty without a cache in front
	SMTPURL  string
	MailFrom string
	Stripe   Stripe
	Limits   document.Limits // graph.DefaultLimits if they are zero

	Visitors *visitor.Limiter // of pages; by default, by address
	Log      *slog.Logger
	Traces   *tracing.Tracing // nil without traces
	Now      func() time.Time // time.Now by default; quotas and rates use it
}

// Stripe has the credentials of the Stripe API; without a SecretKey, Pro cannot be purchased.
type Stripe struct{ SecretKey, WebhookSecret, APIBase string }

// WithAddress derives missing URLs from the address that a server listens on.
func (c Config) WithAddress(address *net.TCPAddr) Config {
	host := address.IP.String()
	if len(address.IP) == 0 || address.IP.IsUnspecified() {
		host = "localhost"
	}
	c.PublicURL = cmp.Or(c.PublicURL, "http://"+net.JoinHostPort(host, strconv.Itoa(address.Port)))
	c.ServiceURL = cmp.Or(c.ServiceURL, c.PublicURL)
	return c
}

// Resolved derives missing URLs for commands, which do not listen.
func (c Config) Resolved() (Config, error) {
	address, err := net.ResolveTCPAddr("tcp", c.Listen)
	if err != nil {
		return c, listenError(c.Listen, err)
	}
	return c.WithAddress(address), nil
}

func listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, listenError(address, err)
	}
	return listener, nil
}

func listenError(address string, err error) error {
	reason := "the address is not valid"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		reason = "the address is already in use"
	case errors.Is(err, syscall.EACCES):
		reason = "the port requires privileges; use one above 1023"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		reason = "this machine does not have that address"
	}
	return fmt.Errorf("cannot listen on %s: %s", address, reason)
}

// filesFolder returns the folder of the files of releases.
func (c Config) filesFolder() string {
	return cmp.Or(c.Files, filepath.Join(c.Database.DataDir, "files"))
}

// ListensOnLoopback reports whether only this machine can connect.
func (c Config) ListensOnLoopback() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// reachesLoopback reports whether the server may connect to this machine: not behind a
// public proxy.
func (c Config) reachesLoopback() bool { return c.ListensOnLoopback() && IsPrivate(c.PublicURL) }

// signInDisabled reports whether nobody can sign in: the emails are only in the log of a
// public server.
func (c Config) signInDisabled() bool { return c.SMTPURL == "" && !IsPrivate(c.PublicURL) }

// OAuthDisabled returns why applications cannot connect to accounts, or "" if they can.
func (c Config) OAuthDisabled() string {
	const noTLS = "PUBLIC_URL does not use https"
	u, err := url.Parse(c.PublicURL)
	if err != nil {
		return noTLS
	}
	ip, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback()
	switch {
	case u.Scheme != "https" && !local:
		return noTLS
	case c.signInDisabled():
		return "nobody can sign in without SMTP_URL"
	}
	return ""
}

// IsPrivate reports whether a URL is only reachable from its own machine or network,
// where everyone who can read the log may sign in.
func IsPrivate(address string) bool {
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
	return !strings.Contains(host, ".") || // a name in the local network
		slices.ContainsFunc([]string{".localhost", ".local", ".internal", ".test", ".home.arpa"}, func(suffix string) bool { return strings.HasSuffix(host, suffix) })
}

// Credit returns the credit line that reuse of the data requires.
func (c Config) Credit() string { return fmt.Sprintf("Source : %s (%s)", c.ServiceName, c.ServiceURL) }

// Service returns what all pages need to know about the service.
func (c Config) Service() page.Service {
	return page.Service{PublicURL: c.PublicURL, ServiceName: c.ServiceName, Credit: c.Credit(), Contact: c.Contact, Log: c.Log}
}

// REST returns what the REST API needs to know about the service.
func (c Config) REST() rest.Config {
	return rest.Config{PublicURL: c.PublicURL, ServiceName: c.ServiceName, ServiceURL: c.ServiceURL, Credit: c.Credit(), Version: c.Version}
}

// Sender returns the sender of emails.
func (c Config) Sender() string {
	if c.MailFrom != "" {
		return c.MailFrom
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Hostname() == "" || net.ParseIP(u.Hostname()) != nil { // an IP address is not a mail domain
		return "palmares@localhost"
	}
	return "palmares@" + u.Hostname()
}

// Mailer returns what sends emails.
func (c Config) Mailer() (*mail.Mailer, error) {
	mailer, err := mail.New(mail.Config{URL: c.SMTPURL, From: c.Sender(), Log: c.Log})
	if err != nil {
		return nil, fmt.Errorf("SMTP_URL or MAIL_FROM: %w", err)
	}
	return mailer, nil
}

// Billing returns what keeps plans in line with subscriptions.
func (c Config) Billing(db *store.Store) *billing.Billing {
	return billing.New(billing.Config{
		SecretKey: c.Stripe.SecretKey, WebhookSecret: c.Stripe.WebhookSecret, APIBase: c.Stripe.APIBase,
		PublicURL: c.PublicURL, ServiceName: c.ServiceName, Store: db, Log: c.Log,
	})
}

// Webhooks returns what delivers events. newest returns the newest release.
func (c Config) Webhooks(db *store.Store, newest func(context.Context) (*release.Release, error)) *webhook.Webhooks {
	return webhook.New(webhook.Config{
		PublicURL: c.PublicURL, ServiceName: c.ServiceName, Store: db, Release: newest, Log: c.Log, Loopback: c.reachesLoopback(),
	})
}
