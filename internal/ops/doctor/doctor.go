// Package doctor checks everything a server depends on and reports what is
// wrong and how to fix it. It changes nothing, and its findings contain no
// secrets.
package doctor

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Config holds the settings to check.
type Config struct {
	Listen           string
	ListensToAll     bool // other machines can connect
	PublicURL        string
	Private          bool // only the server's own machine or network can reach the public URL
	Proxies          []netip.Prefix
	DatabaseURL      string
	ReadURL          string
	DataDir          string
	RedisURL         string
	SMTPURL          string
	MailFrom         string
	Stripe           Stripe
	UnknownVariables []string // environment variables that look like settings and are none

	Now   func() time.Time // this machine's clock; time.Now if nil
	Limit time.Duration    // per check; 5 s if zero
}

// Stripe holds the settings for selling Pro.
type Stripe struct{ SecretKey, WebhookSecret, Price, APIBase string }

// State is the result of a check.
type State string

// The states, from best to worst.
const (
	OK      State = "ok"
	Warning State = "warning"
	Wrong   State = "wrong"
)

// Finding describes the outcome of one check.
type Finding struct {
	Check   string `json:"check"`
	State   State  `json:"state"`
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"`
	Cause   error  `json:"-"` // a library's error; it may contain an address
}

const (
	defaultLimit = 5 * time.Second
	// grace is the extra time a check has to report that its limit is over.
	grace = 500 * time.Millisecond
)

// check is one check; it may add several findings to the report.
type check struct {
	name string
	run  func(context.Context, *Config, *report)
}

var checks = []check{
	{"settings", checkSettings},
	{"database", checkDatabase},
	{"replica", checkReplica},
	{"redis", checkRedis},
	{"mail", checkMail},
	{"stripe", checkStripe},
	{"public url", checkPublicURL},
	{"proxies", checkProxies},
	{"server", checkServer},
}

// Examine runs all checks in parallel and returns their findings in a fixed
// order.
func Examine(ctx context.Context, cfg Config) []Finding {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Limit == 0 {
		cfg.Limit = defaultLimit
	}
	reports := make([]report, len(checks))
	var running sync.WaitGroup
	for i, c := range checks {
		running.Go(func() { c.runWithLimit(ctx, &cfg, &reports[i]) })
	}
	running.Wait()
	var all []Finding
	for i := range reports {
		all = append(all, reports[i].findings...)
	}
	return all
}

func (c check) runWithLimit(ctx context.Context, cfg *Config, r *report) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Limit)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.run(ctx, cfg, r)
	}()
	select {
	case <-done:
	case <-time.After(cfg.Limit + grace):
		r.wrong(c.name, "The check timed out.", "Check that the service responds and that no firewall blocks it.", nil)
	}
	r.close()
}

// Worst returns the worst state of all findings.
func Worst(findings []Finding) State {
	for _, state := range []State{Wrong, Warning} {
		if slices.ContainsFunc(findings, func(f Finding) bool { return f.State == state }) {
			return state
		}
	}
	return OK
}

// report collects the findings of a check. Once closed it ignores new ones,
// because a check that timed out may still be running.
type report struct {
	mu       sync.Mutex
	findings []Finding
	closed   bool
}

func (r *report) add(f Finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.findings = append(r.findings, f)
	}
}

func (r *report) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

func (r *report) ok(check, format string, args ...any) {
	r.add(Finding{Check: check, State: OK, Message: fmt.Sprintf(format, args...)})
}

func (r *report) warn(check, message, advice string, cause error) {
	r.add(Finding{Check: check, State: Warning, Message: message, Advice: advice, Cause: cause})
}

func (r *report) wrong(check, message, advice string, cause error) {
	r.add(Finding{Check: check, State: Wrong, Message: message, Advice: advice, Cause: cause})
}

const (
	// With clocks this far apart, quotas reset at different times on different
	// servers.
	clockWarning = 2 * time.Second
	// With clocks this far apart, sign-in codes, sessions and signatures expire
	// too early or too late.
	clockWrong = time.Minute
)

// clock compares another machine's clock with ours, read at the same moment.
func (r *report) clock(check, owner string, theirs, ours time.Time) {
	ahead := theirs.Sub(ours).Round(time.Millisecond)
	offset := ahead.Abs()
	if offset <= clockWarning {
		r.ok(check, "The clock is within %s of this machine's.", max(offset, time.Millisecond))
		return
	}
	direction := "ahead of"
	if ahead < 0 {
		direction = "behind"
	}
	add := r.warn
	if offset > clockWrong {
		add = r.wrong
	}
	add(check, fmt.Sprintf("%s clock is %s %s this machine's.", owner, offset.Round(time.Second), direction), "Synchronize both machines with a time service such as chrony.", nil)
}

// sentence capitalizes an error message and ends it with a full stop.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}

func formatBytes(n int64) string {
	switch {
	case n < 1<<20:
		return fmt.Sprintf("%d KB", (n+1<<10-1)>>10)
	case n < 10<<30:
		return fmt.Sprintf("%d MB", n>>20)
	}
	return fmt.Sprintf("%d GB", n>>30)
}

func formatAge(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return "just now"
	case d < 2*time.Hour:
		return fmt.Sprintf("%d minutes ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d hours ago", d/time.Hour)
	}
	return fmt.Sprintf("%d days ago", d/(24*time.Hour))
}
