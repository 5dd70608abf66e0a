package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"
	"github.com/alecthomas/kong"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/core/client"
	"palmares/internal/core/edge"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
	"palmares/internal/notify/mail"
	"palmares/internal/server"
	"palmares/internal/web/prose"
)

// settings are read from flags and environment variables. The tag check names a function
// in checks, and min and max are bounds. Most settings are strings, because kong's own
// errors would reveal secrets.
type settings struct {
	Listen         string        `help:"Address to listen on (${default})." default:"127.0.0.1:8080" env:"PALMARES_LISTEN" placeholder:"HOST:PORT" check:"listen"`
	MetricsListen  string        `help:"Address to serve /metrics on. Default: no metrics." env:"PALMARES_METRICS_LISTEN" placeholder:"HOST:PORT" check:"listen"`
	DrainDelay     time.Duration `help:"How long to keep serving after a shutdown signal while /readyz fails, so that load balancers notice; at most 1m (${default})." default:"0s" env:"PALMARES_DRAIN_DELAY" placeholder:"DURATION" min:"1ms" max:"1m"`
	DataDir        string        `help:"Folder of the embedded database (${default})." default:"./data" env:"PALMARES_DATA_DIR" placeholder:"DIR" check:"text"`
	DatabaseURL    string        `help:"PostgreSQL database to use instead of the embedded one." env:"DATABASE_URL" placeholder:"postgres://…" check:"database"`
	RedisURL       string        `help:"Redis to share request quotas between servers." env:"REDIS_URL" placeholder:"redis://…" check:"redis"`
	Files          string        `help:"Folder for the Parquet and SQLite files of releases. Default: files in the data directory." env:"PALMARES_FILES" placeholder:"DIR"`
	FilesMB        int           `name:"files-mb" help:"Maximum size of these files in megabytes (${default}). The oldest are removed first, and written again when they are needed." default:"1000" env:"PALMARES_FILES_MB" placeholder:"MB" min:"1" max:"1048576"`
	CacheMB        int           `help:"Memory for the catalog and caches in megabytes (${default}). A large catalog may take more." default:"128" env:"PALMARES_CACHE_MB" placeholder:"MB" min:"1" max:"1048576"`
	ServiceName    string        `help:"Public name of the service (${default})." default:"palmares" env:"SERVICE_NAME" placeholder:"NAME" check:"text"`
	ServiceURL     string        `help:"Address of the service in the credit line. Default: the public URL." env:"SERVICE_URL" placeholder:"URL" check:"web"`
	Contact        string        `name:"contact-email" help:"Contact email address shown on pages." env:"CONTACT_EMAIL" placeholder:"ADDRESS" check:"email"`
	PublicURL      string        `help:"URL where clients reach the server. Default: http:// and the listen address." env:"PUBLIC_URL" placeholder:"URL" check:"root"`
	PagesDir       string        `help:"Folder with facts.yml, which says who publishes the site, and with Markdown files that replace information pages, such as terms.en.md and terms.fr.md." env:"PALMARES_PAGES_DIR" placeholder:"DIR"`
	TrustedProxies string        `help:"Addresses and networks of proxies whose X-Forwarded-For header is trusted, separated by commas." env:"TRUSTED_PROXIES" placeholder:"CIDR,…" check:"proxies"`

	Edge struct {
		URL    string `name:"purge-url" help:"URL of a cache in front of the servers that purges surrogate keys. Each release purges what it changed." env:"PALMARES_PURGE_URL" placeholder:"URL" check:"purge"`
		Header string `name:"purge-header" help:"Header with the credential for the purge URL." env:"PALMARES_PURGE_HEADER" placeholder:"NAME: VALUE" check:"header"`
	} `embed:"" group:"Edge"`

	Mail struct {
		URL  string `name:"smtp-url" help:"Mail server, smtp:// (STARTTLS) or smtps:// (TLS). Without one, a private server writes sign-in links to its log." env:"SMTP_URL" placeholder:"smtp://…" check:"smtp"`
		From string `name:"mail-from" help:"Sender of emails. Default: palmares@ and the host of the public URL." env:"MAIL_FROM" placeholder:"NAME <ADDRESS>" check:"sender"`
	} `embed:"" group:"Email"`

	Stripe struct {
		SecretKey     string `help:"Secret key of the Stripe API. Without it, the Pro plan cannot be purchased." env:"STRIPE_SECRET_KEY" placeholder:"sk_…"`
		WebhookSecret string `help:"Signing secret of the Stripe webhook endpoint, /billing/stripe." env:"STRIPE_WEBHOOK_SECRET" placeholder:"whsec_…"`
		APIBase       string `hidden:"" help:"Base URL of the Stripe API, for tests." check:"web"`
	} `embed:"" prefix:"stripe-" group:"Billing"`

	GraphQL struct {
		Cost     int           `help:"Maximum cost of an operation (${default})." default:"20000" env:"PALMARES_GRAPHQL_COST" placeholder:"N" min:"1"`
		Response int64         `help:"Maximum size of a response in bytes (${default})." default:"2000000" env:"PALMARES_GRAPHQL_RESPONSE" placeholder:"BYTES" min:"1"`
		Time     time.Duration `help:"Maximum duration of an operation (${default})." default:"5s" env:"PALMARES_GRAPHQL_TIME" placeholder:"DURATION" min:"1ms"`
	} `embed:"" prefix:"graphql-" group:"GraphQL limits"`

	proxies []netip.Prefix
	facts   prose.Facts
	unknown []string // environment variables that look like misspelled settings
}

// checks are the values of the tag check. Their errors never contain values that may
// include a password.
var checks = map[string]func(string) error{
	"listen": checkListen, "text": checkText, "database": store.CheckURL, "redis": quota.CheckRedisURL,
	"web": checkWebURL, "root": checkRootURL, "email": checkContact, "smtp": mail.CheckURL, "sender": mail.CheckFrom,
	"purge": edge.CheckURL, "header": edge.CheckHeader,
	"proxies": func(list string) error { _, err := client.ParseNetworks(list); return err },
}

// dropped lists the variables of earlier versions. A server that ignored one would be
// another than its operator believes. KEYS stands for their names in facts.yml.
var dropped = []struct{ names, advice string }{
	{"DATABASE_READ_URL", "remove it, and add servers to scale reads: they hold the catalog in memory"},
	{"STRIPE_PRICE", "remove it: the price is the one that palmares billing setup creates"},
	{"STRIPE_API_BASE", "use the flag --stripe-api-base"},
	{"PALMARES_CACHE_TAG", "remove it: Cache-Tag is sent if PALMARES_PURGE_URL is set"},
	{"PALMARES_VERBOSE", "use the flag --verbose"},
	{"PALMARES_GRAPHQL_BODY PALMARES_GRAPHQL_TOKENS PALMARES_GRAPHQL_DEPTH PALMARES_GRAPHQL_FIELDS PALMARES_GRAPHQL_ALIASES PALMARES_GRAPHQL_DIRECTIVES",
		"remove it: of the limits on GraphQL, only PALMARES_GRAPHQL_COST, PALMARES_GRAPHQL_RESPONSE and PALMARES_GRAPHQL_TIME can be set"},
	{"PUBLISHER_NAME PUBLISHER_ADDRESS PUBLISHER_PHONE PUBLISHER_REGISTRATION PUBLISHER_CAPITAL PUBLISHER_VAT PUBLICATION_DIRECTOR HOSTING_NAME HOSTING_ADDRESS HOSTING_PHONE",
		"write KEYS in facts.yml in the folder of PALMARES_PAGES_DIR"},
}

// server returns the settings of a server that logs to log.
func (s *settings) server(log *slog.Logger) server.Config {
	limits := graph.DefaultLimits
	limits.Cost, limits.Response, limits.Time = s.GraphQL.Cost, s.GraphQL.Response, s.GraphQL.Time
	return server.Config{
		Version: version, Listen: s.Listen, MetricsListen: s.MetricsListen, DrainDelay: s.DrainDelay,
		Database: store.Config{DatabaseURL: s.DatabaseURL, DataDir: s.DataDir}, RedisURL: s.RedisURL, Files: s.Files, FilesMB: s.FilesMB, CacheMB: s.CacheMB,
		PublicURL: s.PublicURL, ServiceName: s.ServiceName, ServiceURL: s.ServiceURL, Contact: s.Contact, PagesDir: s.PagesDir, Facts: s.facts,
		Proxies: s.proxies, Edge: edge.Endpoint(s.Edge),
		SMTPURL: s.Mail.URL, MailFrom: s.Mail.From, Stripe: server.Stripe(s.Stripe), Limits: limits, Log: log,
	}
}

// missingFacts returns what the About page lacks.
func (s *settings) missingFacts() []string {
	missing := s.facts.Missing()
	if s.Contact == "" {
		missing = append(missing, "CONTACT_EMAIL")
	}
	return missing
}

// check returns an error for the first invalid setting or flag of a command.
func (s *settings) check(flags []*kong.Flag) error {
	for _, flag := range flags {
		if err := checkFlag(flag); err != nil {
			return fmt.Errorf("%s: %w", cmp.Or(strings.Join(flag.Envs, ""), "--"+flag.Name), err)
		}
	}
	const useless = "%s: has no effect without %s; set both"
	switch {
	case s.Edge.Header != "" && s.Edge.URL == "":
		return fmt.Errorf(useless, "PALMARES_PURGE_HEADER", "PALMARES_PURGE_URL")
	case s.Stripe.WebhookSecret != "" && s.Stripe.SecretKey == "":
		return fmt.Errorf(useless, "STRIPE_WEBHOOK_SECRET", "STRIPE_SECRET_KEY")
	}
	s.proxies, _ = client.ParseNetworks(s.TrustedProxies)
	s.PublicURL = strings.TrimRight(s.PublicURL, "/") // paths are appended to it
	return nil
}

// checkFlag checks a value by its tags. A default is valid, even if it is out of bounds.
func checkFlag(flag *kong.Flag) error {
	if check := checks[flag.Tag.Get("check")]; check != nil && (flag.HasDefault || !flag.Target.IsZero()) {
		return check(flag.Target.String())
	}
	low, high := flag.Tag.Get("min"), flag.Tag.Get("max")
	switch value := reflect.Indirect(flag.Target); {
	case low == "" || !value.IsValid() || flag.HasDefault && value.Int() == parseBound(flag.Default):
	case high != "" && (value.Int() < parseBound(low) || value.Int() > parseBound(high)):
		return fmt.Errorf("must be from %s to %s (got %v)", low, high, value)
	case value.Int() < parseBound(low):
		return fmt.Errorf("must be at least %s (got %v)", low, value)
	}
	return nil
}

// parseBound parses a number or a duration in a tag.
func parseBound(text string) int64 {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err) // the tag is invalid
	}
	return int64(d)
}

// checkServer checks what only a server needs: variables of earlier versions, misspelled
// variables and the facts.
func (s *settings) checkServer(known []string) (err error) {
	for _, d := range dropped {
		known = append(known, strings.Fields(d.names)...)
		set := slices.DeleteFunc(strings.Fields(d.names), func(name string) bool { return os.Getenv(name) == "" })
		if len(set) > 0 {
			names := strings.Join(set, ", ")
			keys := strings.ToLower(strings.ReplaceAll(names, "_", "-"))
			return fmt.Errorf("%s: no longer supported; %s", names, strings.Replace(d.advice, "KEYS", keys, 1))
		}
	}
	s.unknown = unknownVariables(known, os.Environ())
	s.facts, err = prose.ReadFacts(s.PagesDir)
	return err
}

// settingPrefix is the prefix of variables that only palmares uses.
const settingPrefix = "PALMARES_"

// notSettings are variables with that prefix that are no mistake: those of the tests, and
// those that Kubernetes derives from a service with the name palmares.
var notSettings = regexp.MustCompile(`^PALMARES_(TEST_.*|SERVICE_HOST|SERVICE_PORT.*|PORT|PORT_.*)$`)

// unknownVariables returns variables of an environment that look like misspelled settings.
func unknownVariables(known, environment []string) (unknown []string) {
	for _, variable := range environment {
		name, _, _ := strings.Cut(variable, "=")
		misspelled := func(setting string) bool { return isMisspelling(name, setting) }
		if !slices.Contains(known, name) && !notSettings.MatchString(name) && (strings.HasPrefix(name, settingPrefix) || slices.ContainsFunc(known, misspelled)) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// isMisspelling reports whether a name has at most one mistake in eight letters, or the
// same letters in another order. With more, SMTP_SSL would be a misspelled SMTP_URL.
func isMisspelling(name, setting string) bool {
	sorted := func(text string) []byte { return slices.Sorted(slices.Values([]byte(text))) }
	return levenshtein.ComputeDistance(name, setting) <= len(name)/8 || slices.Equal(sorted(name), sorted(setting))
}

// settingNames returns the environment variables of all settings.
func settingNames(flags []*kong.Flag) (names []string) {
	for _, flag := range flags {
		names = append(names, flag.Envs...)
	}
	return names
}

func checkText(text string) error {
	if strings.TrimSpace(text) == "" {
		return errors.New("must not be blank")
	}
	return nil
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
	if err := checkWebURL(address); err != nil {
		return err
	}
	u, err := url.Parse(address)
	if err != nil || strings.Trim(u.Path, "/") != "" || strings.ContainsAny(address, "?#@") {
		return errors.New("must have only a scheme and a host, as in https://palmares.example, without a path, query, fragment or user")
	}
	return nil
}
