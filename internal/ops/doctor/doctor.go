// Package doctor looks at everything a server works with, and says what is
// well and what to do about the rest. It reads and changes nothing; what it
// says is in our own words and holds no secret.
package doctor

import (
	"context"
	"net/netip"
	"sync"
	"time"
)

// Config is what a server would be started with.
type Config struct {
	Listen           string
	ListensToAll     bool // others than this machine can reach it
	PublicURL        string
	Private          bool // only its own machine or network reaches the public URL
	Proxies          []netip.Prefix
	DatabaseURL      string
	ReadURL          string
	DataDir          string
	RedisURL         string
	SMTPURL          string
	MailFrom         string
	Stripe           Stripe
	UnknownVariables []string // in the environment, that look like settings

	Now   func() time.Time // this machine's clock
	Limit time.Duration    // of one check; 5 s if zero
}

// Stripe is what selling Pro needs.
type Stripe struct{ SecretKey, WebhookSecret, Price, APIBase string }

// State is how something is.
type State string

// The states, from good to bad.
const (
	OK      State = "ok"
	Warning State = "warning"
	Wrong   State = "wrong"
)

// Finding is the outcome of one check.
type Finding struct {
	Check   string `json:"check"`
	State   State  `json:"state"`
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"`
	Cause   error  `json:"-"` // in a library's words
}

const limit = 5 * time.Second

// check looks at one thing, and reports as it goes.
type check struct {
	name string
	look func(context.Context, *Config, *report)
}

var checks = []check{
	{"settings", settings},
	{"database", database},
	{"replica", replica},
	{"redis", redis},
	{"mail", mail},
	{"stripe", stripe},
	{"public url", publicURL},
	{"proxies", proxies},
	{"server", server},
}

// Examine makes every check, side by side, and returns what they found in the
// same order each time.
func Examine(ctx context.Context, cfg Config) []Finding {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Limit == 0 {
		cfg.Limit = limit
	}
	reports := make([]report, len(checks))
	var looking sync.WaitGroup
	for i, c := range checks {
		looking.Go(func() { c.within(ctx, &cfg, &reports[i]) })
	}
	looking.Wait()
	var all []Finding
	for i := range reports {
		all = append(all, reports[i].found...)
	}
	return all
}

// within makes a check that ends in time, whatever it waits for.
func (c check) within(ctx context.Context, cfg *Config, r *report) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Limit)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.look(ctx, cfg, r)
	}()
	select {
	case <-done:
	case <-time.After(cfg.Limit + grace):
		r.wrong(c.name, "It did not answer in time.", "See whether it hangs, or the way to it is blocked.", nil)
	}
	r.close()
}

// grace is what a check has to put into words that its time is over.
const grace = 500 * time.Millisecond

// Worst is the worst state of all.
func Worst(found []Finding) State {
	worst := OK
	for _, f := range found {
		if f.State == Wrong || f.State == Warning && worst == OK {
			worst = f.State
		}
	}
	return worst
}
