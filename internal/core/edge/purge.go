package edge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxBatch is how many keys a request may have: Fastly's limit.
	maxBatch = 256
	// maxBatchBytes is how long they may be together: Varnish accepts headers of 8 KiB.
	maxBatchBytes = 7_000
	// MaxChanged is how many keys are purged separately. More changes purge everything,
	// which takes the edge less time.
	MaxChanged = 1_000
	// secondPurge is how long after the first purge misses that were in flight have
	// arrived at the edge.
	secondPurge = 2 * time.Second

	attemptTimeout = 10 * time.Second
	retryTime      = time.Minute
	firstRetry     = 250 * time.Millisecond
	lastRetry      = 8 * time.Second
)

// Endpoint is the URL of the edge that purges keys. It receives POST requests with the
// keys in KeysHeader, and as JSON in the body.
type Endpoint struct {
	URL    string
	Header string // carries a credential, as in "Name: value"; may be empty
}

var credentialPattern = regexp.MustCompile(`^[A-Za-z0-9-]+: *[^\x00-\x1f\x7f]+$`)

// CheckURL returns an error if a URL cannot be one of an endpoint.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return errors.New("must be an absolute http or https URL without a user; set PALMARES_PURGE_HEADER for a credential")
	}
	return nil
}

// CheckHeader returns an error if a header cannot be that of an endpoint.
func CheckHeader(header string) error {
	if !credentialPattern.MatchString(header) {
		return errors.New("must have the form Name: value")
	}
	return nil
}

// RefusedError is the status of the response to a purge that was not accepted.
type RefusedError int

func (e RefusedError) Error() string { return fmt.Sprintf("the edge responded with status %d", int(e)) }

// client does not follow redirects, which would pass the credential on.
var client = &http.Client{
	Timeout:       attemptTimeout,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Purge sends one request. Its error contains neither the URL nor the credential.
func (e Endpoint) Purge(ctx context.Context, keys ...string) error {
	body, err := json.Marshal(map[string][]string{"surrogate_keys": keys})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(body))
	if err != nil {
		return CheckURL(e.URL)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(KeysHeader, strings.Join(keys, " "))
	if name, value, found := strings.Cut(e.Header, ":"); found {
		request.Header.Set(name, strings.TrimSpace(value))
	}
	response, err := client.Do(request)
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return failed.Err
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // so that the connection can be reused
	if response.StatusCode/100 != 2 {
		return RefusedError(response.StatusCode)
	}
	return nil
}

// Purger purges what releases changed. All methods accept nil, for a server without an
// edge.
type Purger struct {
	Accepted atomic.Int64 // requests
	Failed   atomic.Int64 // purges that were given up

	send      func(ctx context.Context, keys ...string) error // Endpoint.Purge
	changed   func(ctx context.Context, after, upTo int) ([]string, error)
	log       *slog.Logger
	published chan span
	mu        sync.Mutex
	missed    int // the release after which purges were given up, or -1
}

// span is a publication: the release that was served before, and the new one.
type span struct{ after, upTo int }

// NewPurger returns a purger, or nil without a URL. The function changed returns the keys
// of what the releases after one changed, up to another.
func NewPurger(e Endpoint, changed func(ctx context.Context, after, upTo int) ([]string, error), log *slog.Logger) *Purger {
	if e.URL == "" {
		return nil
	}
	return &Purger{changed: changed, log: log, send: e.Purge, published: make(chan span, 100), missed: -1}
}

// Release makes Run purge what differs between the release that was served before and
// a new one. If that is not newer, as after a backup was restored, everything is
// purged. Release never blocks.
func (p *Purger) Release(before, upTo int) {
	if p == nil {
		return
	}
	select {
	case p.published <- span{before, upTo}:
	default: // a hundred releases within the time of a purge: the next one purges them too
		p.miss(before)
	}
}

// Run purges until ctx ends. A release does not wait for the purges of others.
func (p *Purger) Run(ctx context.Context) {
	if p == nil {
		return
	}
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-p.published:
			running.Go(func() { p.purgeTwice(ctx, s) })
		}
	}
}

// miss makes the next purge include the changes after a release.
func (p *Purger) miss(after int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.missed < 0 || after < p.missed {
		p.missed = after
	}
}

func (p *Purger) purgeTwice(ctx context.Context, s span) {
	p.mu.Lock()
	if p.missed >= 0 && s.after < s.upTo {
		s.after = min(s.after, p.missed)
	}
	p.missed = -1
	p.mu.Unlock()
	keys := p.keys(ctx, s)
	log := p.log.With("release", s.upTo, "keys", len(keys))
	if err := p.purge(ctx, keys); err != nil {
		p.Failed.Add(1)
		p.miss(s.after)
		log.Error("purging the edge failed", "cause", err)
		return
	}
	log.Info("edge purged", "again", false)
	select {
	case <-ctx.Done(): // this server sends no more responses
	case <-time.After(secondPurge):
	}
	if err := p.purge(context.WithoutCancel(ctx), keys); err != nil {
		p.Failed.Add(1)
		log.Error("purging the edge again failed", "cause", err)
		return
	}
	log.Info("edge purged", "again", true)
}

// keys returns what to purge.
func (p *Purger) keys(ctx context.Context, s span) (keys []string) {
	if s.after >= s.upTo || s.upTo-s.after > MaxChanged {
		return []string{All}
	}
	for release := s.after; release < s.upTo; release++ {
		keys = append(keys, Release(release))
	}
	changed, err := p.changed(ctx, s.after, s.upTo)
	if err != nil {
		p.log.Warn("reading what a release changed failed: everything is purged", "release", s.upTo, "cause", err)
	}
	if keys = append(keys, changed...); err != nil || len(keys) > MaxChanged {
		return []string{All}
	}
	return keys
}

// purge sends keys in batches.
func (p *Purger) purge(ctx context.Context, keys []string) error {
	ctx, cancel := context.WithTimeout(ctx, retryTime)
	defer cancel()
	for len(keys) > 0 {
		n, size := 0, 0
		for n < len(keys) && n < maxBatch && size < maxBatchBytes {
			size += len(keys[n]) + 1
			n++
		}
		if err := p.retry(ctx, keys[:n]); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// retry sends a batch until it is accepted or ctx ends.
func (p *Purger) retry(ctx context.Context, keys []string) error {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := p.send(ctx, keys...)
		if err == nil {
			p.Accepted.Add(1)
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}
