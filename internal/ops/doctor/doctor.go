// Package doctor checks everything a server depends on and reports problems and how
// to fix them. It changes nothing, and its findings contain no secrets.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"palmares/internal/core/edge"
)

// Config holds the settings to check.
type Config struct {
	Listen           string
	ListensOnAll     bool // other machines can connect
	PublicURL        string
	Private          bool // only the server's own machine or network can reach the public URL
	Proxies          []netip.Prefix
	DatabaseURL      string
	DataDir          string
	RedisURL         string
	Edge             edge.Endpoint // its URL is empty without an edge
	SMTPURL          string
	MailFrom         string
	OAuthDisabled    string // why applications cannot connect to accounts, or ""
	Stripe           Stripe
	MissingFacts     []string // what the About page lacks
	SecurityProblem  string   // what is wrong with security.txt, or ""
	UnknownVariables []string // environment variables that look like misspelled settings

	Now   func() time.Time // this machine's clock; time.Now if nil
	Limit time.Duration    // per check; 5 s if zero
}

// Stripe holds the settings for selling Pro.
type Stripe struct{ SecretKey, WebhookSecret, APIBase string }

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
	Cause   string `json:"cause,omitempty"` // a library's error; it may contain an address
}

const (
	defaultLimit = 5 * time.Second
	// grace is the extra time that a check has to report its own timeout.
	grace = 500 * time.Millisecond
)

// examination is one check; it may report several findings.
type examination struct {
	name string
	run  func(context.Context, *Config, report)
}

var checks = []examination{
	{"settings", checkSettings},
	{"about page", checkAbout},
	{"security.txt", checkSecurity},
	{"database", checkDatabase},
	{"redis", checkRedis},
	{"edge", checkEdge},
	{"mail", checkMail},
	{"stripe", checkStripe},
	{"public url", checkPublicURL},
	{"oauth", checkOAuth},
	{"proxies", checkProxies},
	{"server", checkServer},
}

// Examine runs all checks in parallel and returns their findings in a fixed
// order.
func Examine(ctx context.Context, cfg Config) []Finding {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Limit = cmp.Or(cfg.Limit, defaultLimit)
	found := make([][]Finding, len(checks))
	var running sync.WaitGroup
	for i, c := range checks {
		running.Go(func() { found[i] = c.runWithLimit(ctx, &cfg) })
	}
	running.Wait()
	return slices.Concat(found...)
}

func (c examination) runWithLimit(ctx context.Context, cfg *Config) (found []Finding) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Limit)
	defer cancel()
	findings := make(chan Finding, maxFindings)
	go func() {
		defer close(findings)
		c.run(ctx, cfg, findings)
	}()
	timeout := time.After(cfg.Limit + grace)
	for {
		select {
		case f, more := <-findings:
			if !more {
				return found
			}
			found = append(found, f)
		case <-timeout:
			return append(found, Finding{Check: c.name, State: Wrong, Message: "The check timed out.", Advice: "Check that the service responds and that no firewall blocks it."})
		}
	}
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

// report receives the findings of a check. Its buffer has room for all of them,
// because those of a check that timed out are not read.
type report chan<- Finding

// maxFindings is more than any check reports.
const maxFindings = 20

func (r report) add(check string, state State, message, advice string, cause error) {
	f := Finding{Check: check, State: state, Message: message, Advice: advice}
	if cause != nil {
		f.Cause = cause.Error()
	}
	r <- f
}

func (r report) ok(check, format string, args ...any) {
	r.add(check, OK, fmt.Sprintf(format, args...), "", nil)
}

// outcome is a possible result of a check.
type outcome struct {
	applies         bool
	state           State
	message, advice string
}

// addFirst reports the first outcome that applies, and returns its state.
func (r report) addFirst(check string, cause error, outcomes []outcome) State {
	o := outcomes[slices.IndexFunc(outcomes, func(o outcome) bool { return o.applies })]
	r.add(check, o.state, o.message, o.advice, cause)
	return o.state
}

const (
	// With clocks this far apart, quotas reset at different times on different
	// servers.
	clockWarning = 2 * time.Second
	// With clocks this far apart, sign-in codes, sessions and signatures expire
	// too early or too late.
	clockWrong = time.Minute
)

// clock compares another machine's clock with this machine's.
func (r report) clock(check, owner string, theirs, ours time.Time) {
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
	state := Warning
	if offset > clockWrong {
		state = Wrong
	}
	r.add(check, state, fmt.Sprintf("%s clock is %s %s this machine's.", owner, offset.Round(time.Second), direction), "Synchronize both machines with a time service such as chrony.", nil)
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
