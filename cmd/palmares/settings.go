package main

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"palmares/graph"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
	"palmares/rest"
)

// settings come from flags and the environment. They are plain text to the
// parser and checked here, because the parser's own errors repeat values, and
// some values are secrets.
type settings struct {
	Listen         string        `help:"Address to serve on (${default})." default:"127.0.0.1:8080" env:"PALMARES_LISTEN" placeholder:"HOST:PORT"`
	MetricsListen  string        `help:"Address to serve /metrics on, apart from all else. Default: none." env:"PALMARES_METRICS_LISTEN" placeholder:"HOST:PORT"`
	DrainDelay     time.Duration `help:"How long a server that is told to end goes on while /readyz already says so, for a load balancer to notice: up to 1m (${default})." default:"0s" env:"PALMARES_DRAIN_DELAY" placeholder:"TIME"`
	DataDir        string        `help:"Where the embedded database lives (${default})." default:"./data" env:"PALMARES_DATA_DIR" placeholder:"DIR"`
	DatabaseURL    string        `help:"PostgreSQL to use instead of the embedded database." env:"DATABASE_URL" placeholder:"postgres://…"`
	ReadURL        string        `name:"database-read-url" help:"Replica of that PostgreSQL for a server to read the catalog from." env:"DATABASE_READ_URL" placeholder:"postgres://…"`
	RedisURL       string        `help:"Redis to count quotas in, for several servers together." env:"REDIS_URL" placeholder:"redis://…"`
	CacheMB        int           `help:"Megabytes of memory for cached responses, documents and counts (${default})." default:"128" env:"PALMARES_CACHE_MB" placeholder:"MB"`
	ServiceName    string        `help:"The service's public name, for the credit line." default:"palmares" env:"SERVICE_NAME"`
	ServiceURL     string        `help:"The service's public address, for the credit line. Default: the public URL." env:"SERVICE_URL" placeholder:"URL"`
	PublicURL      string        `help:"Where readers reach this server. Default: http:// and the listen address." env:"PUBLIC_URL" placeholder:"URL"`
	TrustedProxies string        `help:"Proxies whose X-Forwarded-For counts: addresses and networks, separated by commas." env:"TRUSTED_PROXIES" placeholder:"CIDR,…"`

	Mail struct {
		URL  string `name:"smtp-url" help:"Mail server to send messages through, smtp:// (STARTTLS) or smtps:// (TLS). Without it, sign-in links are printed to the log of a server that is not public." env:"SMTP_URL" placeholder:"smtp://…"`
		From string `name:"mail-from" help:"Who messages come from. Default: the service's name at the public URL's host." env:"MAIL_FROM" placeholder:"NAME <ADDRESS>"`
	} `embed:"" group:"Mail"`

	Stripe struct {
		SecretKey     string `help:"Key of Stripe's API. Without it, Pro cannot be subscribed to." env:"STRIPE_SECRET_KEY" placeholder:"sk_…"`
		WebhookSecret string `help:"What Stripe signs its events with, which come to /billing/stripe." env:"STRIPE_WEBHOOK_SECRET" placeholder:"whsec_…"`
		Price         string `help:"Price of Pro. Default: found by its lookup key; see palmares billing setup." env:"STRIPE_PRICE" placeholder:"price_…"`
		APIBase       string `help:"Where Stripe's API is, for tests." env:"STRIPE_API_BASE" placeholder:"URL"`
	} `embed:"" prefix:"stripe-" group:"Selling Pro"`

	GraphQL struct {
		Body       int64         `help:"Bytes of a request's body." default:"100000" env:"PALMARES_GRAPHQL_BODY"`
		Tokens     int           `help:"Tokens of a document." default:"4000" env:"PALMARES_GRAPHQL_TOKENS"`
		Depth      int           `help:"Levels of fields." default:"12" env:"PALMARES_GRAPHQL_DEPTH"`
		Fields     int           `help:"Fields of a document." default:"500" env:"PALMARES_GRAPHQL_FIELDS"`
		Aliases    int           `help:"Aliases of a document." default:"50" env:"PALMARES_GRAPHQL_ALIASES"`
		Directives int           `help:"Directives of a document." default:"50" env:"PALMARES_GRAPHQL_DIRECTIVES"`
		Cost       int           `help:"Cost of an operation." default:"20000" env:"PALMARES_GRAPHQL_COST"`
		Response   int64         `help:"Bytes of a response (${default})." default:"2000000" env:"PALMARES_GRAPHQL_RESPONSE"`
		Time       time.Duration `help:"Time of an operation." default:"5s" env:"PALMARES_GRAPHQL_TIME"`
	} `embed:"" prefix:"graphql-" group:"Limits of GraphQL requests"`

	proxies   []netip.Prefix
	importing bool // the command is one that writes much
}

// servedAt fills in the addresses that follow from where the server listens.
func (s *settings) servedAt(address *net.TCPAddr) {
	host := address.IP.String()
	if address.IP.IsUnspecified() {
		host = "localhost"
	}
	s.PublicURL = cmp.Or(s.PublicURL, "http://"+net.JoinHostPort(host, strconv.Itoa(address.Port)))
	s.ServiceURL = cmp.Or(s.ServiceURL, s.PublicURL)
}

// listensOnLoopback tells whether only this machine can reach the server.
func (s *settings) listensOnLoopback() bool {
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// credit is the line that reuse of the data must show.
func (s *settings) credit() string {
	return fmt.Sprintf("Source : %s (%s)", s.ServiceName, s.ServiceURL)
}

func (s *settings) graphLimits() graph.Limits { return graph.Limits(s.GraphQL) }

// rest is what the REST facade tells of the service.
func (s *settings) rest() rest.Config {
	return rest.Config{PublicURL: s.PublicURL, ServiceName: s.ServiceName, ServiceURL: s.ServiceURL, Credit: s.credit()}
}

// check tells the first wrong setting and fills in what follows from others.
func (s *settings) check() error {
	if err := checkListen(s.Listen); err != nil {
		return fmt.Errorf("PALMARES_LISTEN: %w", err)
	}
	if s.MetricsListen != "" {
		if err := checkListen(s.MetricsListen); err != nil {
			return fmt.Errorf("PALMARES_METRICS_LISTEN: %w", err)
		}
	}
	if strings.TrimSpace(s.DataDir) == "" {
		return fmt.Errorf("PALMARES_DATA_DIR: is blank")
	}
	if s.CacheMB < 1 || s.CacheMB > 1<<20 {
		return fmt.Errorf("PALMARES_CACHE_MB: %d is not from 1 to %d", s.CacheMB, 1<<20)
	}
	if s.DrainDelay < 0 || s.DrainDelay > time.Minute {
		return fmt.Errorf("PALMARES_DRAIN_DELAY: %s is not from 0s to 1m", s.DrainDelay)
	}
	if err := checkDatabaseURL(s.DatabaseURL); err != nil {
		return fmt.Errorf("DATABASE_URL: %w", err)
	}
	if err := checkDatabaseURL(s.ReadURL); err != nil {
		return fmt.Errorf("DATABASE_READ_URL: %w", err)
	}
	if s.ReadURL != "" && s.DatabaseURL == "" {
		return fmt.Errorf("DATABASE_READ_URL: is a replica of nothing, without DATABASE_URL")
	}
	if s.RedisURL != "" {
		if err := quota.CheckRedis(s.RedisURL); err != nil {
			return fmt.Errorf("REDIS_URL: %w", err)
		}
	}
	if strings.TrimSpace(s.ServiceName) == "" {
		return fmt.Errorf("SERVICE_NAME: is blank")
	}
	if err := checkWebURL(s.PublicURL); err != nil {
		return fmt.Errorf("PUBLIC_URL: %w", err)
	}
	if err := checkRoot(s.PublicURL); err != nil {
		return fmt.Errorf("PUBLIC_URL: %w", err)
	}
	if err := checkWebURL(s.ServiceURL); err != nil {
		return fmt.Errorf("SERVICE_URL: %w", err)
	}
	s.PublicURL = strings.TrimRight(s.PublicURL, "/") // paths are put behind it
	if err := s.checkMail(); err != nil {
		return err
	}
	if err := s.checkStripe(); err != nil {
		return err
	}
	if l := s.GraphQL; l.Body < 1 || l.Tokens < 1 || l.Depth < 1 || l.Fields < 1 || l.Cost < 1 || l.Response < 1 || l.Time <= 0 || l.Aliases < 0 || l.Directives < 0 {
		return fmt.Errorf("PALMARES_GRAPHQL_…: a limit must be above 0")
	}
	var err error
	if s.proxies, err = parseProxies(s.TrustedProxies); err != nil {
		return fmt.Errorf("TRUSTED_PROXIES: %w", err)
	}
	return nil
}

func (s *settings) checkMail() error {
	if s.Mail.URL != "" {
		if err := mail.CheckURL(s.Mail.URL); err != nil {
			return fmt.Errorf("SMTP_URL: %w", err)
		}
	}
	if s.Mail.From != "" {
		if err := mail.CheckFrom(s.Mail.From); err != nil {
			return fmt.Errorf("MAIL_FROM: %w", err)
		}
	}
	return nil
}

// checkStripe repeats nothing of what is secret.
func (s *settings) checkStripe() error {
	for _, beside := range []struct{ name, value string }{
		{"STRIPE_WEBHOOK_SECRET", s.Stripe.WebhookSecret}, {"STRIPE_PRICE", s.Stripe.Price}, {"STRIPE_API_BASE", s.Stripe.APIBase},
	} {
		if beside.value != "" && s.Stripe.SecretKey == "" {
			return fmt.Errorf("%s: does nothing without STRIPE_SECRET_KEY", beside.name)
		}
	}
	if err := checkWebURL(s.Stripe.APIBase); err != nil {
		return fmt.Errorf("STRIPE_API_BASE: %w", err)
	}
	return nil
}

func checkListen(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not an address of the form host:port", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q is not a port from 0 to 65535", port)
	}
	return nil
}

// checkDatabaseURL repeats nothing of the address: it may hold a password.
func checkDatabaseURL(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return fmt.Errorf("is not an address of the form postgres://user:password@host:port/database")
	}
	if strings.Trim(u.Path, "/") == "" {
		return fmt.Errorf("names no database, as in postgres://host:port/database")
	}
	if store.CheckURL(address) != nil {
		return fmt.Errorf("has a part that is not understood")
	}
	return nil
}

// checkWebURL takes none, too: see servedAt.
func checkWebURL(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("%q is not an absolute http or https address", address)
	}
	return nil
}

// checkRoot takes a web address with nothing behind its host: pages, cookies
// and links are all at the root. It repeats nothing, since a user may have a
// password.
func checkRoot(address string) error {
	u, err := url.Parse(address)
	if err != nil || strings.Trim(u.Path, "/") != "" || strings.ContainsAny(address, "?#@") {
		return fmt.Errorf("must be a scheme and a host alone, as in https://palmares.example, without a path, a query, a fragment or a user")
	}
	return nil
}

// parseProxies takes single addresses and networks.
func parseProxies(list string) ([]netip.Prefix, error) {
	var proxies []netip.Prefix
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		if address, err := netip.ParseAddr(item); err == nil {
			address = address.Unmap().WithZone("") // as callers' are compared
			proxies = append(proxies, netip.PrefixFrom(address, address.BitLen()))
			continue
		}
		network, err := netip.ParsePrefix(item)
		if err != nil {
			return nil, fmt.Errorf("%q is neither an address nor a network such as 10.0.0.0/8", item)
		}
		proxies = append(proxies, network.Masked())
	}
	return proxies, nil
}
