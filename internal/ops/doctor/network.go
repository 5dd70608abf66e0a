package doctor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/gomodule/redigo/redis"

	"palmares/internal/account/billing"
	"palmares/internal/core/edge"
	"palmares/internal/core/problem"
	"palmares/internal/core/quota"
	"palmares/internal/notify/mail"
)

// checkSettings looks for misspelled variables, which have no effect. The values
// of settings are validated before the doctor runs.
func checkSettings(_ context.Context, cfg *Config, r report) {
	r.addFirst("settings", nil, []outcome{
		{len(cfg.UnknownVariables) > 0, Warning, fmt.Sprintf("Unknown environment variables: %s.", strings.Join(cfg.UnknownVariables, ", ")), "Correct their names; palmares --help lists all settings."},
		{true, OK, "All settings are valid.", ""},
	})
}

// checkAbout reports what the About page lacks. The law requires it of public sites.
func checkAbout(_ context.Context, cfg *Config, r report) {
	message := fmt.Sprintf("The About page is incomplete, because these facts are missing: %s.", strings.Join(cfg.MissingFacts, ", "))
	r.addFirst("about page", nil, []outcome{
		{len(cfg.MissingFacts) == 0, OK, "The About page is complete.", ""},
		{cfg.Private, OK, message, ""},
		{true, Warning, message, "Write them in facts.yml in the folder of PALMARES_PAGES_DIR, and set CONTACT_EMAIL: French law requires this of public sites. A company also writes publisher-registration, publisher-capital and publisher-vat."},
	})
}

// checkSecurity reports whether researchers find where to report vulnerabilities.
func checkSecurity(_ context.Context, cfg *Config, r report) {
	r.addFirst("security.txt", nil, []outcome{
		{cfg.SecurityProblem == "", OK, "Researchers find where to report vulnerabilities.", ""},
		{cfg.Private, OK, cfg.SecurityProblem, ""},
		{true, Warning, cfg.SecurityProblem, "Write security-contact, and security-expires with a day within a year, in facts.yml in the folder of PALMARES_PAGES_DIR."},
	})
}

// minProxyBits is the shortest plausible prefix of a network of proxies.
const minProxyBits = 8

// checkProxies checks that clients can be distinguished and cannot forge their
// address.
func checkProxies(_ context.Context, cfg *Config, r report) {
	for _, network := range cfg.Proxies {
		if network.Bits() < minProxyBits {
			r.add("proxies", Wrong, fmt.Sprintf("TRUSTED_PROXIES contains %s: almost any client can forge its address and get a new quota with each request.", network),
				"List only the addresses or networks of your proxies.", nil)
			return
		}
	}
	r.addFirst("proxies", nil, []outcome{
		{len(cfg.Proxies) > 0, OK, fmt.Sprintf("Addresses or networks trusted for X-Forwarded-For: %d.", len(cfg.Proxies)), ""},
		{!cfg.Private && !cfg.ListensOnAll, Wrong, "The server is behind a proxy and TRUSTED_PROXIES is empty: all callers without a key share one quota.", "Set TRUSTED_PROXIES to the proxy's address, such as 127.0.0.1."},
		{!cfg.Private, Warning, "TRUSTED_PROXIES is empty: behind a proxy or CDN, all callers without a key share one quota.", "Set it to the proxy's addresses, or leave it empty if clients connect directly."},
		{true, OK, "TRUSTED_PROXIES is empty: clients connect directly.", ""},
	})
}

// checkPublicURL checks that the public URL leads to a palmares server.
func checkPublicURL(ctx context.Context, cfg *Config, r report) {
	if cfg.PublicURL == "" {
		r.addFirst("public url", nil, []outcome{
			{cfg.ListensOnAll, Warning, "PUBLIC_URL is not set: links and examples use localhost.", "Set it to the URL where clients reach the server."},
			{true, OK, "PUBLIC_URL is not set: links use this machine's address.", ""},
		})
		return
	}
	if !cfg.Private && !strings.HasPrefix(cfg.PublicURL, "https://") {
		r.add("public url", Wrong, "PUBLIC_URL does not use https: keys and sessions are sent unencrypted.", "Put a proxy with a certificate in front of the server, and change PUBLIC_URL to https.", nil)
		return
	}
	status, err := Ready(ctx, cfg.PublicURL)
	var certificate *tls.CertificateVerificationError
	r.addFirst("public url", err, []outcome{
		{errors.As(err, &certificate), Wrong, "The certificate at PUBLIC_URL is not trusted or belongs to another host.", "Renew it, or correct PUBLIC_URL."},
		{errors.Is(err, ErrNotPalmares), Warning, "The server at PUBLIC_URL is not palmares.", "Correct PUBLIC_URL, or make the proxy forward all requests."},
		{err != nil, Warning, "PUBLIC_URL is unreachable.", "Start the server and its proxy. If your clients are on a different network, test the URL from there."},
		{status.Error != "", Warning, "The server at PUBLIC_URL is not ready: " + status.Error + ".", "Fix the other findings first."},
		{true, OK, fmt.Sprintf("The server at PUBLIC_URL is ready, with release %d.", status.Release), ""},
	})
}

// checkEdge purges a key that no response has.
func checkEdge(ctx context.Context, cfg *Config, r report) {
	if cfg.Edge.URL == "" {
		return
	}
	err := cfg.Edge.Purge(ctx, "doctor")
	var refused edge.RefusedError
	r.addFirst("edge", err, []outcome{
		{errors.As(err, &refused), Wrong, fmt.Sprintf("PALMARES_PURGE_URL refused a purge with status %d.", int(refused)), "Check the URL and PALMARES_PURGE_HEADER."},
		{err != nil, Wrong, "PALMARES_PURGE_URL is unreachable: the edge serves outdated responses after a release.", "Start the edge, or correct the URL."},
		{true, OK, "The edge accepts purges.", ""},
	})
}

// checkOAuth reports whether applications can connect to accounts.
func checkOAuth(_ context.Context, cfg *Config, r report) {
	r.addFirst("oauth", nil, []outcome{
		{cfg.OAuthDisabled == "", OK, "Applications can connect to accounts.", ""},
		{cfg.Private, OK, "Applications cannot connect to accounts, because " + cfg.OAuthDisabled + ". API keys work.", ""},
		{true, Warning, "Applications cannot connect to accounts, because " + cfg.OAuthDisabled + ".", "Set PUBLIC_URL to an https URL, and SMTP_URL to your mail server. API keys work."},
	})
}

// checkServer checks the server on this machine, if one is running.
func checkServer(ctx context.Context, cfg *Config, r report) {
	address, err := LocalAddress(cfg.Listen)
	if err != nil {
		r.ok("server", "Not checked: PALMARES_LISTEN does not name a fixed port.")
		return
	}
	status, err := Ready(ctx, address)
	r.addFirst("server", nil, []outcome{
		{errors.Is(err, ErrNotPalmares), Wrong, fmt.Sprintf("Another program is listening on %s.", cfg.Listen), "Stop it, or change PALMARES_LISTEN."},
		{err != nil, OK, fmt.Sprintf("No server is running on %s.", cfg.Listen), ""},
		{status.Error != "", Wrong, "The server on this machine is not ready: " + status.Error + ".", "Fix the other findings. If there are none, restart the server."},
		{true, OK, fmt.Sprintf("The server on %s is ready, with release %d.", cfg.Listen, status.Release), ""},
	})
}

// Status is the response of /readyz.
type Status struct {
	Status  string `json:"status"`
	Release int    `json:"release"`
	Error   string `json:"error"` // why the server is not ready, on one line
}

// ErrNotPalmares means that another program responded.
var ErrNotPalmares = errors.New("the server at this address is not palmares")

// probe has a shorter timeout than a check, so that the check can report it.
var probe = &http.Client{
	Timeout:       4 * time.Second,
	Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Ready requests /readyz of the server at a base URL such as
// http://127.0.0.1:8080.
func Ready(ctx context.Context, base string) (status Status, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", nil)
	if err != nil {
		return status, err
	}
	response, err := probe.Do(request)
	if err != nil {
		return status, err
	}
	defer response.Body.Close()
	err = json.NewDecoder(io.LimitReader(response.Body, 10_000)).Decode(&status)
	ready := response.StatusCode == http.StatusOK && status.Status == "ready"
	if status.Error = oneLine(status.Error); err != nil || !ready && (response.StatusCode != http.StatusServiceUnavailable || status.Error == "") {
		return status, ErrNotPalmares
	}
	return status, nil
}

// oneLine shortens a server's message to a single line without control characters.
func oneLine(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	text = strings.TrimSuffix(strings.Join(words, " "), ".")
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "…"
	}
	return text
}

// LocalAddress returns the base URL of a server on this machine with a listen
// address.
func LocalAddress(listen string) (base string, err error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", err
	}
	if port == "0" {
		return "", errors.New("port 0 selects a different port at each start; set a fixed one")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

func checkRedis(ctx context.Context, cfg *Config, r report) {
	if cfg.RedisURL == "" {
		r.ok("redis", "REDIS_URL is not set: each server counts requests on its own.")
		return
	}
	if err := quota.CheckRedisURL(cfg.RedisURL); err != nil {
		r.add("redis", Wrong, "REDIS_URL "+err.Error()+".", "Correct REDIS_URL.", nil)
		return
	}
	var info map[string]string
	var theirs, before, after time.Time
	client, err := quota.DialRedis(ctx, cfg.RedisURL)
	if err == nil {
		defer client.Close()
		// Counting needs scripts, which the Redis user may not be allowed to run.
		_, err = redis.DoContext(client, ctx, "EVAL", "return 1", 0)
	}
	if err == nil {
		info, err = redisInfo(redis.String(redis.DoContext(client, ctx, "INFO")))
	}
	if err == nil {
		var parts []int64 // seconds and microseconds
		before = cfg.Now()
		if parts, err = redis.Int64s(redis.DoContext(client, ctx, "TIME")); err == nil {
			theirs = time.Unix(parts[0], parts[1]*1000)
		}
		after = cfg.Now()
	}
	if err != nil {
		const fallback = " Until it is available, each server counts requests on its own."
		codes := []string{"NOAUTH", "WRONGPASS", "NOPERM", "ERR invalid password", "ERR AUTH"}
		var timeout net.Error
		timedOut := ctx.Err() != nil || errors.As(err, &timeout) && timeout.Timeout()
		r.addFirst("redis", err, []outcome{
			{slices.ContainsFunc(codes, func(code string) bool { return strings.HasPrefix(err.Error(), code) }), Wrong, "Redis rejected the user, the password or a command." + fallback, "Correct REDIS_URL, or allow the user to run scripts and INFO."},
			{timedOut, Wrong, "Redis took too long to respond." + fallback, "Check that it responds and that no firewall blocks it."},
			{true, Wrong, "Redis is unreachable." + fallback, "Start it, or correct REDIS_URL."},
		})
		return
	}
	if info["role"] == "slave" {
		r.add("redis", Wrong, "This Redis is a read-only replica.", "Set REDIS_URL to its primary.", nil)
		return
	}
	persistence := "persists its data to disk"
	// Hosted servers often do not allow this command.
	snapshots, err := redis.StringMap(redis.DoContext(client, ctx, "CONFIG", "GET", "save"))
	if info["aof_enabled"] != "1" && err == nil && snapshots["save"] == "" {
		persistence = "does not persist its data: after a restart, the servers restore their own counts"
	}
	r.ok("redis", "Redis %s responds and %s.", info["redis_version"], persistence)
	memory, _ := strconv.ParseInt(info["used_memory"], 10, 64)
	maxMemory, _ := strconv.ParseInt(info["maxmemory"], 10, 64)
	policy, used, limit := info["maxmemory_policy"], formatBytes(memory), formatBytes(maxMemory)
	// A caller whose count is evicted gets a new quota.
	r.addFirst("redis memory", nil, []outcome{
		{maxMemory == 0, OK, used + " is in use, with no limit.", ""},
		{policy != "noeviction", Warning, fmt.Sprintf("Redis evicts counts when it reaches its memory limit of %s (maxmemory-policy %s).", limit, policy), "Set its maxmemory-policy to noeviction."},
		{memory > maxMemory/10*9, Warning, fmt.Sprintf("%s of %s is in use. Redis stops counting requests when its memory is full.", used, limit), "Raise its maxmemory."},
		{true, OK, fmt.Sprintf("%s of %s is in use, and nothing is evicted.", used, limit), ""},
	})
	r.clock("redis clock", "Redis'", theirs, before.Add(after.Sub(before)/2))
}

// redisInfo parses the lines of INFO, which are "name:value".
func redisInfo(text string, err error) (map[string]string, error) {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		info[name] = value
	}
	return info, err
}

// checkMail connects and signs in to the mail server, and sends nothing.
func checkMail(ctx context.Context, cfg *Config, r report) {
	if cfg.SMTPURL == "" {
		r.addFirst("mail", nil, []outcome{
			{cfg.Private, OK, "SMTP_URL is not set: sign-in links are printed to the log.", ""},
			{true, Warning, "SMTP_URL is not set, so nobody can sign in.", "Set SMTP_URL to your mail server."},
		})
		return
	}
	mailer, err := mail.New(mail.Config{URL: cfg.SMTPURL, From: cfg.MailFrom, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		r.add("mail", Wrong, sentence(err.Error()), "Correct SMTP_URL or MAIL_FROM.", nil)
		return
	}
	got, err := mailer.Probe(ctx)
	if err != nil {
		p := problem.Of(err)
		r.add("mail", Wrong, p.Message, "Correct SMTP_URL (smtp:// uses STARTTLS, smtps:// uses TLS), or fix the mail server. No email was sent.", p.Cause)
		return
	}
	r.addFirst("mail", nil, []outcome{
		{!got.Encrypted && mailer.HasPassword(), Warning, "The mail server on this machine offers no encryption, so the password is not sent.", "Enable STARTTLS on the mail server, or remove the password from SMTP_URL."},
		{!got.Encrypted, OK, "The mail server on this machine accepts unencrypted connections.", ""},
		{got.SignedIn, OK, "The mail server accepts an encrypted connection and the password.", ""},
		{true, OK, "The mail server accepts an encrypted connection.", ""},
	})
}

// checkStripe only reads from Stripe.
func checkStripe(ctx context.Context, cfg *Config, r report) {
	if cfg.Stripe.SecretKey == "" {
		r.ok("stripe", "STRIPE_SECRET_KEY is not set: Pro cannot be purchased.")
		return
	}
	if cfg.Stripe.WebhookSecret == "" {
		r.add("stripe secret", Wrong, "STRIPE_WEBHOOK_SECRET is missing; the server does not start without it.", "Set it to the signing secret that Stripe shows for the endpoint PUBLIC_URL"+billing.EventsPath+".", nil)
	}
	stripe := billing.New(billing.Config{
		SecretKey: cfg.Stripe.SecretKey, WebhookSecret: cfg.Stripe.WebhookSecret, APIBase: cfg.Stripe.APIBase, PublicURL: cfg.PublicURL,
	})
	price, err := stripe.InspectPrice(ctx)
	r.addFirst("stripe", err, []outcome{
		{billing.IsInvalidKey(err), Wrong, "Stripe rejected the key in STRIPE_SECRET_KEY.", "Set it to a key that Stripe's dashboard shows as active."},
		{billing.IsForbidden(err), Wrong, "The key in STRIPE_SECRET_KEY has no permission to read prices.", "Use a secret key, or give the restricted key that permission."},
		{err != nil, Wrong, "Stripe does not respond.", "Check Stripe's status page, and that this machine can reach Stripe's API."},
		{!cfg.Private && strings.HasPrefix(cfg.Stripe.SecretKey, "sk_test_"), Warning, "Stripe accepts the key, but it is a test key: no payments are made.", "Set the live key to sell Pro."},
		{true, OK, "Stripe accepts the key.", ""},
	})
	if err != nil {
		return
	}
	const unreadable = "Look them up in Stripe's dashboard, or give the key permission to read them."
	advertised := fmt.Sprintf("€%d per month plus VAT", billing.MonthlyEuros)
	r.addFirst("price", nil, []outcome{
		{price.ID == "", Wrong, "Stripe has no price for Pro.", "Run palmares billing setup."},
		{!price.AsAdvertised, Wrong, fmt.Sprintf("The price %s differs from the advertised price, %s.", price.ID, advertised), "Archive it and run palmares billing setup."},
		{true, OK, fmt.Sprintf("The price %s is %s.", price.ID, advertised), ""},
	})
	taxed, err := stripe.ComputesTax(ctx)
	r.addFirst("tax", err, []outcome{
		{err != nil, Warning, "The settings of Stripe Tax cannot be read.", unreadable},
		{!taxed, Wrong, "Stripe Tax is not set up, so nobody can subscribe.", "Add your address and registrations under Tax in Stripe's dashboard."},
		{true, OK, "Stripe calculates taxes.", ""},
	})
	page, err := stripe.InspectPortal(ctx)
	r.addFirst("customer portal", err, []outcome{
		{err != nil, Warning, "The settings of Stripe's customer portal cannot be read.", unreadable},
		{page == billing.PortalConfigs{}, Wrong, "Stripe's customer portal is not set up, so subscribers cannot change their card, see invoices or cancel.", "Run palmares billing setup."},
		{true, OK, "Subscribers can manage cards, invoices and cancellation in Stripe's customer portal.", ""},
	})
	if cfg.Private { // Stripe cannot reach it; developers use Stripe's CLI to forward events
		return
	}
	missing, err := stripe.MissingEvents(ctx)
	r.addFirst("events", err, []outcome{
		{err != nil, Warning, "The list of webhook endpoints cannot be read.", unreadable},
		{len(missing) == len(billing.Events), Warning, "Stripe sends no events to " + cfg.PublicURL + billing.EventsPath + ".", "Add this endpoint in Stripe's dashboard; palmares billing setup lists the events."},
		{len(missing) > 0, Warning, "Stripe does not send " + strings.Join(missing, ", ") + ".", "Add these events to the endpoint in Stripe's dashboard."},
		{true, OK, "Stripe sends all required events.", ""},
	})
}
