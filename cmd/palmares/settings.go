package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"palmares/auth"
	"palmares/graph/document"
	"palmares/internal/core/edge"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
	"palmares/internal/server"
	"palmares/internal/web/info"
)

// settings are read from flags and environment variables. Most are strings that
// check validates, because kong's own errors would reveal secrets.
type settings struct {
	Listen         string        `help:"Address to listen on (${default})." default:"127.0.0.1:8080" env:"PALMARES_LISTEN" placeholder:"HOST:PORT"`
	MetricsListen  string        `help:"Address to serve /metrics on. Default: no metrics." env:"PALMARES_METRICS_LISTEN" placeholder:"HOST:PORT"`
	DrainDelay     time.Duration `help:"How long to keep serving after a shutdown signal while /readyz fails, so that load balancers notice; at most 1m (${default})." default:"0s" env:"PALMARES_DRAIN_DELAY" placeholder:"DURATION"`
	DataDir        string        `help:"Folder of the embedded database (${default})." default:"./data" env:"PALMARES_DATA_DIR" placeholder:"DIR"`
	DatabaseURL    string        `help:"PostgreSQL database to use instead of the embedded one." env:"DATABASE_URL" placeholder:"postgres://…"`
	ReadURL        string        `name:"database-read-url" hidden:"" env:"DATABASE_READ_URL"`
	RedisURL       string        `help:"Redis to share request quotas between servers." env:"REDIS_URL" placeholder:"redis://…"`
	Files          string        `help:"Folder for the Parquet and SQLite files of releases. Default: files in the data directory." env:"PALMARES_FILES" placeholder:"DIR"`
	FilesMB        int           `name:"files-mb" help:"Maximum size of these files in megabytes (${default}). The oldest are removed first, and written again when they are needed." default:"1000" env:"PALMARES_FILES_MB" placeholder:"MB"`
	CacheMB        int           `help:"Memory for the catalog and caches in megabytes (${default}). A large catalog may take more." default:"128" env:"PALMARES_CACHE_MB" placeholder:"MB"`
	ServiceName    string        `help:"Public name of the service (${default})." default:"palmares" env:"SERVICE_NAME" placeholder:"NAME"`
	ServiceURL     string        `help:"Address of the service in the credit line. Default: the public URL." env:"SERVICE_URL" placeholder:"URL"`
	Contact        string        `name:"contact-email" help:"Contact email address shown on pages." env:"CONTACT_EMAIL" placeholder:"ADDRESS"`
	PublicURL      string        `help:"URL where clients reach the server. Default: http:// and the listen address." env:"PUBLIC_URL" placeholder:"URL"`
	PagesDir       string        `help:"Folder with Markdown files that replace information pages, such as terms.en.md and terms.fr.md." env:"PALMARES_PAGES_DIR" placeholder:"DIR"`
	TrustedProxies string        `help:"Addresses and networks of proxies whose X-Forwarded-For header is trusted, separated by commas." env:"TRUSTED_PROXIES" placeholder:"CIDR,…"`

	Edge struct {
		URL      string `name:"purge-url" help:"URL of a cache in front of the servers that purges surrogate keys. Each release purges what it changed." env:"PALMARES_PURGE_URL" placeholder:"URL"`
		Header   string `name:"purge-header" help:"Header with the credential for the purge URL." env:"PALMARES_PURGE_HEADER" placeholder:"NAME: VALUE"`
		CacheTag bool   `name:"cache-tag" help:"Send surrogate keys as Cache-Tag too, for CDNs that use that header." env:"PALMARES_CACHE_TAG"`
	} `embed:"" group:"Edge"`

	Mail struct {
		URL  string `name:"smtp-url" help:"Mail server, smtp:// (STARTTLS) or smtps:// (TLS). Without one, a private server writes sign-in links to its log." env:"SMTP_URL" placeholder:"smtp://…"`
		From string `name:"mail-from" help:"Sender of emails. Default: palmares@ and the host of the public URL." env:"MAIL_FROM" placeholder:"NAME <ADDRESS>"`
	} `embed:"" group:"Email"`

	Stripe struct {
		SecretKey     string `help:"Secret key of the Stripe API. Without it, the Pro plan cannot be purchased." env:"STRIPE_SECRET_KEY" placeholder:"sk_…"`
		WebhookSecret string `help:"Signing secret of the Stripe webhook endpoint, /billing/stripe." env:"STRIPE_WEBHOOK_SECRET" placeholder:"whsec_…"`
		Price         string `help:"ID of the Stripe price for Pro. Default: the one that palmares billing setup created." env:"STRIPE_PRICE" placeholder:"price_…"`
		APIBase       string `help:"Base URL of the Stripe API, for tests." env:"STRIPE_API_BASE" placeholder:"URL"`
	} `embed:"" prefix:"stripe-" group:"Billing"`

	Facts facts `embed:"" group:"About page"`

	GraphQL struct {
		Body       int64         `help:"Maximum size of a request body in bytes (${default})." default:"100000" env:"PALMARES_GRAPHQL_BODY" placeholder:"BYTES"`
		Tokens     int           `help:"Maximum number of tokens in a document (${default})." default:"4000" env:"PALMARES_GRAPHQL_TOKENS" placeholder:"N"`
		Depth      int           `help:"Maximum nesting depth of fields (${default})." default:"12" env:"PALMARES_GRAPHQL_DEPTH" placeholder:"N"`
		Fields     int           `help:"Maximum number of fields in a document (${default})." default:"500" env:"PALMARES_GRAPHQL_FIELDS" placeholder:"N"`
		Aliases    int           `help:"Maximum number of aliases in a document (${default})." default:"50" env:"PALMARES_GRAPHQL_ALIASES" placeholder:"N"`
		Directives int           `help:"Maximum number of directives in a document (${default})." default:"50" env:"PALMARES_GRAPHQL_DIRECTIVES" placeholder:"N"`
		Cost       int           `help:"Maximum cost of an operation (${default})." default:"20000" env:"PALMARES_GRAPHQL_COST" placeholder:"N"`
		Response   int64         `help:"Maximum size of a response in bytes (${default})." default:"2000000" env:"PALMARES_GRAPHQL_RESPONSE" placeholder:"BYTES"`
		Time       time.Duration `help:"Maximum duration of an operation (${default})." default:"5s" env:"PALMARES_GRAPHQL_TIME" placeholder:"DURATION"`
	} `embed:"" prefix:"graphql-" group:"GraphQL limits"`

	proxies []netip.Prefix
}

// facts have the fields of info.Facts.
type facts struct {
	Publisher    string `name:"publisher-name" help:"Publisher of the site on the About page, with the legal form of a company." env:"PUBLISHER_NAME" placeholder:"NAME"`
	Address      string `name:"publisher-address" help:"Address of the publisher; for a company, of its registered office." env:"PUBLISHER_ADDRESS" placeholder:"ADDRESS"`
	Phone        string `name:"publisher-phone" help:"Phone number of the publisher." env:"PUBLISHER_PHONE" placeholder:"NUMBER"`
	Registration string `name:"publisher-registration" help:"Registration of the publisher, such as RCS Paris 123 456 789, if it has one." env:"PUBLISHER_REGISTRATION" placeholder:"TEXT"`
	Capital      string `name:"publisher-capital" help:"Share capital of the publisher, if it is a company." env:"PUBLISHER_CAPITAL" placeholder:"AMOUNT"`
	VAT          string `name:"publisher-vat" help:"VAT number of the publisher, if it has one." env:"PUBLISHER_VAT" placeholder:"NUMBER"`
	Director     string `name:"publication-director" help:"Director of publication." env:"PUBLICATION_DIRECTOR" placeholder:"NAME"`
	Host         string `name:"hosting-name" help:"Hosting company." env:"HOSTING_NAME" placeholder:"NAME"`
	HostAddress  string `name:"hosting-address" help:"Address of the hosting company." env:"HOSTING_ADDRESS" placeholder:"ADDRESS"`
	HostPhone    string `name:"hosting-phone" help:"Phone number of the hosting company." env:"HOSTING_PHONE" placeholder:"NUMBER"`
}

// server returns the settings of a server that logs to log.
func (s *settings) server(log *slog.Logger) server.Config {
	return server.Config{
		Version: version, Listen: s.Listen, MetricsListen: s.MetricsListen, DrainDelay: s.DrainDelay,
		Database: store.Config{DatabaseURL: s.DatabaseURL, DataDir: s.DataDir}, RedisURL: s.RedisURL, Files: s.Files, FilesMB: s.FilesMB, CacheMB: s.CacheMB,
		PublicURL: s.PublicURL, ServiceName: s.ServiceName, ServiceURL: s.ServiceURL, Contact: s.Contact, PagesDir: s.PagesDir, Facts: info.Facts(s.Facts),
		Proxies: s.proxies, Edge: edge.Endpoint{URL: s.Edge.URL, Header: s.Edge.Header}, CacheTag: s.Edge.CacheTag,
		SMTPURL: s.Mail.URL, MailFrom: s.Mail.From, Stripe: server.Stripe(s.Stripe), Limits: document.Limits(s.GraphQL), Log: log,
	}
}

// missingFacts returns the settings that the About page lacks. Which of the others
// apply depends on the publisher.
func (s *settings) missingFacts() (names []string) {
	for _, fact := range []struct{ name, value string }{
		{"PUBLISHER_NAME", s.Facts.Publisher}, {"PUBLISHER_ADDRESS", s.Facts.Address}, {"PUBLISHER_PHONE", s.Facts.Phone},
		{"PUBLICATION_DIRECTOR", s.Facts.Director},
		{"HOSTING_NAME", s.Facts.Host}, {"HOSTING_ADDRESS", s.Facts.HostAddress}, {"HOSTING_PHONE", s.Facts.HostPhone},
		{"CONTACT_EMAIL", s.Contact},
	} {
		if fact.value == "" {
			names = append(names, fact.name)
		}
	}
	return names
}

// check returns an error for the first invalid setting. Errors never contain values
// that may include a password.
func (s *settings) check() error {
	const withoutStripe, tooLow = "has no effect without STRIPE_SECRET_KEY; set both", "must be at least %v (got %v)"
	var proxiesErr error
	s.proxies, proxiesErr = parseProxies(s.TrustedProxies)
	for _, c := range []struct {
		name string
		err  error
	}{
		{"PALMARES_LISTEN", checkListen(s.Listen)},
		{"PALMARES_METRICS_LISTEN", optional(s.MetricsListen, checkListen)},
		{"PALMARES_DATA_DIR", require(strings.TrimSpace(s.DataDir) != "", "must not be blank")},
		{"PALMARES_CACHE_MB", require(s.CacheMB >= 1 && s.CacheMB <= 1<<20, "must be from 1 to %d (got %d)", 1<<20, s.CacheMB)},
		{"PALMARES_FILES_MB", require(s.FilesMB >= 1 && s.FilesMB <= 1<<20, "must be from 1 to %d (got %d)", 1<<20, s.FilesMB)},
		{"PALMARES_DRAIN_DELAY", require(s.DrainDelay >= 0 && s.DrainDelay <= time.Minute, "must be from 0s to 1m (got %s)", s.DrainDelay)},
		{"DATABASE_URL", optional(s.DatabaseURL, checkDatabaseURL)},
		{"DATABASE_READ_URL", require(s.ReadURL == "", "is no longer supported, because servers hold the catalog in memory; remove it, and add servers to scale reads")},
		{"REDIS_URL", optional(s.RedisURL, quota.CheckRedisURL)},
		{"SERVICE_NAME", require(strings.TrimSpace(s.ServiceName) != "", "must not be blank")},
		{"PUBLIC_URL", optional(s.PublicURL, checkWebURL)},
		{"PUBLIC_URL", optional(s.PublicURL, checkRootURL)},
		{"SERVICE_URL", optional(s.ServiceURL, checkWebURL)},
		{"PALMARES_PURGE_URL", optional(s.Edge.URL, edge.CheckURL)},
		{"PALMARES_PURGE_HEADER", optional(s.Edge.Header, edge.CheckHeader)},
		{"PALMARES_PURGE_HEADER", require(s.Edge.Header == "" || s.Edge.URL != "", "has no effect without PALMARES_PURGE_URL; set both")},
		{"SMTP_URL", optional(s.Mail.URL, mail.CheckURL)},
		{"MAIL_FROM", optional(s.Mail.From, mail.CheckFrom)},
		{"CONTACT_EMAIL", optional(s.Contact, checkContact)},
		{"PUBLISHER_…, PUBLICATION_DIRECTOR and HOSTING_…", require(!strings.ContainsAny(fmt.Sprint(s.Facts), "\r\n"), "must each be on one line")},
		{"STRIPE_WEBHOOK_SECRET", require(s.Stripe.WebhookSecret == "" || s.Stripe.SecretKey != "", withoutStripe)},
		{"STRIPE_PRICE", require(s.Stripe.Price == "" || s.Stripe.SecretKey != "", withoutStripe)},
		{"STRIPE_API_BASE", require(s.Stripe.APIBase == "" || s.Stripe.SecretKey != "", withoutStripe)},
		{"STRIPE_API_BASE", optional(s.Stripe.APIBase, checkWebURL)},
		{"PALMARES_GRAPHQL_BODY", require(s.GraphQL.Body >= 1, tooLow, 1, s.GraphQL.Body)},
		{"PALMARES_GRAPHQL_TOKENS", require(s.GraphQL.Tokens >= 1, tooLow, 1, s.GraphQL.Tokens)},
		{"PALMARES_GRAPHQL_DEPTH", require(s.GraphQL.Depth >= 1, tooLow, 1, s.GraphQL.Depth)},
		{"PALMARES_GRAPHQL_FIELDS", require(s.GraphQL.Fields >= 1, tooLow, 1, s.GraphQL.Fields)},
		{"PALMARES_GRAPHQL_ALIASES", require(s.GraphQL.Aliases >= 0, tooLow, 0, s.GraphQL.Aliases)},
		{"PALMARES_GRAPHQL_DIRECTIVES", require(s.GraphQL.Directives >= 0, tooLow, 0, s.GraphQL.Directives)},
		{"PALMARES_GRAPHQL_COST", require(s.GraphQL.Cost >= 1, tooLow, 1, s.GraphQL.Cost)},
		{"PALMARES_GRAPHQL_RESPONSE", require(s.GraphQL.Response >= 1, tooLow, 1, s.GraphQL.Response)},
		{"PALMARES_GRAPHQL_TIME", require(s.GraphQL.Time >= time.Millisecond, tooLow, time.Millisecond, s.GraphQL.Time)},
		{"TRUSTED_PROXIES", proxiesErr},
	} {
		if c.err != nil {
			return fmt.Errorf("%s: %w", c.name, c.err)
		}
	}
	s.PublicURL = strings.TrimRight(s.PublicURL, "/") // paths are appended to it
	return nil
}

// optional applies a check to settings that are set.
func optional(value string, check func(string) error) error {
	if value == "" {
		return nil
	}
	return check(value)
}

// require returns an error unless a condition holds.
func require(holds bool, format string, args ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, args...)
}

func checkListen(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("must have the form host:port (got %q)", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("must have a port from 0 to 65535 (got %q)", port)
	}
	return nil
}

func checkDatabaseURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return errors.New("must have the form postgres://user:password@host:port/database")
	}
	if strings.Trim(u.Path, "/") == "" {
		return errors.New("must name a database, as in postgres://host:port/database")
	}
	if store.CheckURL(address) != nil {
		return errors.New("has an invalid port or parameter")
	}
	return nil
}

func checkWebURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("must be an absolute http or https URL (got %q)", maskCredentials(address))
	}
	return nil
}

func checkContact(address string) error {
	if _, err := auth.NormalizeEmail(address); err != nil {
		return fmt.Errorf("must have the form name@example.com (got %q)", address)
	}
	return nil
}

// checkRootURL rejects paths: pages, cookies and links assume the root.
func checkRootURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || strings.Trim(u.Path, "/") != "" || strings.ContainsAny(address, "?#@") {
		return errors.New("must have only a scheme and a host, as in https://palmares.example, without a path, query, fragment or user")
	}
	return nil
}

// parseProxies parses addresses and networks separated by commas.
func parseProxies(list string) ([]netip.Prefix, error) {
	var proxies []netip.Prefix
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		if address, err := netip.ParseAddr(item); err == nil {
			address = address.Unmap().WithZone("") // the form in which client addresses are compared
			proxies = append(proxies, netip.PrefixFrom(address, address.BitLen()))
			continue
		}
		network, err := netip.ParsePrefix(item)
		if err != nil {
			return nil, fmt.Errorf("must be addresses or networks such as 10.0.0.0/8, separated by commas (got %q)", item)
		}
		proxies = append(proxies, network.Masked())
	}
	return proxies, nil
}
