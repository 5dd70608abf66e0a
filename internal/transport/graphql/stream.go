package graphql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"palmares/auth"
	"palmares/graph"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/limiter"
	"palmares/internal/core/problem"
)

// Subscriptions follow the GraphQL over SSE protocol in "distinct connections"
// mode: each request is a stream.

const (
	defaultHeartbeat  = 15 * time.Second
	defaultMaxStreams = 1_000
	// sendTime is the time limit for one event or heartbeat, instead of the
	// server's limit for a whole response.
	sendTime = 20 * time.Second
	// defaultStreamTime is the maximum duration of a stream. A client that
	// reconnects continues after the last event that it received.
	defaultStreamTime = time.Hour
	// defaultCheckEvery ends the streams of a revoked key within 2 seconds: keys
	// are cached for up to a second.
	defaultCheckEvery = 500 * time.Millisecond
	// publicationBatch is the maximum number of missed releases per query.
	publicationBatch = 100
	// reconnectAfter is how long clients wait before they reconnect.
	reconnectAfter = 2 * time.Second
)

// StreamConfig configures streams. Zero values stand for the defaults.
type StreamConfig struct {
	// Network identifies anonymous callers. It is required.
	Network func(*http.Request) string
	// Recheck returns a caller with its current plan, or an error if its key is no
	// longer valid. By default, callers never change.
	Recheck func(context.Context, auth.Caller) (auth.Caller, error)
	// MaxDuration is the maximum duration of a stream; by default, an hour.
	MaxDuration time.Duration
	// CheckInterval is the interval between rechecks of a caller.
	CheckInterval time.Duration
}

// streams counts and ends the open streams.
type streams struct {
	limiter.Slots[string]
	config StreamConfig
	closed context.Context
	close  context.CancelFunc
}

// Close ends all streams and rejects new ones. Other requests are still served.
func (h *Handler) Close() { h.streams.close() }

// OpenStreams returns the number of open streams.
func (h *Handler) OpenStreams() int { return h.streams.Open() }

// stream sends each release until the client disconnects or the stream ends.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, req graph.Request, media string) {
	if r.Method == http.MethodHead {
		w.Header().Set("Allow", "GET, POST, QUERY")
		h.fail(w, r, media, httpError(http.StatusMethodNotAllowed, problem.BadInput, "Streams do not support HEAD; use GET, POST or QUERY."))
		return
	}
	s, rejection := h.executor.Subscribe(r.Context(), req)
	if rejection != nil {
		h.write(w, media, statusOf(rejection, media), rejection)
		return
	}
	caller := auth.CallerFrom(r.Context())
	release, err := func() {}, h.streams.closed.Err()
	if err == nil {
		release, err = h.streams.Reserve(h.streamOwner(r, caller), caller.Plan.Terms().Streams, h.MaxStreams)
	}
	if err != nil {
		h.rejectStream(w, r, media, caller.Plan, err)
		return
	}
	defer release()
	// Taken before the first position is read, so that any later epoch ends the
	// stream.
	_, epoch := h.executor.NextRelease()
	last, p := h.startPosition(r)
	if p != nil {
		h.fail(w, r, media, &httpProblem{status: p.Code.Status(), problem: p})
		return
	}
	out := newEventWriter(w, s.Cost)
	start := retryField
	if last > 0 { // for a client that reconnects before the first event
		start += "id: " + (&journal.Event{Number: last}).ID() + "\n"
	}
	if out.send(start+"\n") != nil { // also sends the headers
		return
	}
	ctx, end := context.WithCancel(r.Context())
	supervised := make(chan struct{})
	go func() {
		defer close(supervised)
		if h.mustEnd(ctx, caller, epoch) {
			end()
			out.shortenDeadline() // a client that does not read must not delay the shutdown
		}
	}()
	h.sendReleases(ctx, s, out, last)
	end()
	<-supervised // it must not use the connection after the handler returns
}

// streamOwner returns who a stream counts against: an account, with all of its
// keys, or a network of anonymous callers.
func (h *Handler) streamOwner(r *http.Request, caller auth.Caller) string {
	if caller.Key != "" {
		return "account " + strconv.Itoa(caller.Account)
	}
	return "network " + h.streams.config.Network(r)
}

// rejectStream responds with 429 whatever the reason: the client has to wait.
func (h *Handler) rejectStream(w http.ResponseWriter, r *http.Request, media string, plan auth.Plan, cause error) {
	message, after := "", ""
	switch limit := plan.Terms().Streams; {
	case errors.Is(cause, limiter.ErrOwnerLimit) && plan == auth.Anonymous:
		message, after = fmt.Sprintf("Too many streams: without an API key, at most %d may be open at the same time from one network. Close one, or send an API key.", limit), "60"
	case errors.Is(cause, limiter.ErrOwnerLimit):
		message, after = fmt.Sprintf("Too many streams: your plan allows at most %d at the same time. Close one before you open another.", limit), "60"
	case errors.Is(cause, limiter.ErrTotalLimit):
		h.executor.Log().WarnContext(r.Context(), "stream rejected", "cause", cause, "open", h.MaxStreams, "request_id", problem.RequestID(r.Context()))
		message, after = "The server has too many open streams at the moment. Try again later.", "30"
	default:
		message, after = "The server is restarting. Open the stream again in a moment.", "5"
	}
	w.Header().Set("Retry-After", after)
	h.fail(w, r, media, httpError(http.StatusTooManyRequests, problem.TooMany, "%s", message))
}

// mustEnd waits until the server shuts down, release numbers start over, the stream
// reaches its maximum duration or its caller loses access. It returns false if ctx
// ends first.
func (h *Handler) mustEnd(ctx context.Context, caller auth.Caller, epoch <-chan struct{}) bool {
	// The jitter keeps streams that opened together from reconnecting together.
	longest := cmp.Or(h.streams.config.MaxDuration, defaultStreamTime)
	lifetime := time.NewTimer(longest - rand.N(longest/10+1))
	defer lifetime.Stop()
	check := time.NewTicker(cmp.Or(h.streams.config.CheckInterval, defaultCheckEvery))
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-h.streams.closed.Done():
			return true
		case <-epoch:
			return true
		case <-lifetime.C:
			return true
		case <-check.C:
			if h.losesAccess(ctx, caller) {
				return true
			}
		}
	}
}

// losesAccess reports whether a caller's streams must end. After a downgrade,
// all of them end, and as many can reconnect as the new plan allows.
func (h *Handler) losesAccess(ctx context.Context, caller auth.Caller) bool {
	if h.streams.config.Recheck == nil || caller.Key == "" {
		return false
	}
	now, err := h.streams.config.Recheck(ctx, caller)
	return err != nil || now.Plan.Terms().Streams < caller.Plan.Terms().Streams
}

// startPosition returns the event after which a stream starts: the last one that
// the client received, or the newest.
func (h *Handler) startPosition(r *http.Request) (int, *problem.Problem) {
	received := r.Header.Get("Last-Event-ID")
	number, ok := journal.ParseID(received)
	if received != "" && !ok {
		return 0, problem.New(problem.BadInput, "Last-Event-ID must be an event ID, such as evt_42.")
	}
	events, err := h.executor.Publications(r.Context(), journal.Query{NewestFirst: true, Limit: 1})
	switch {
	case err != nil:
		h.executor.Log().ErrorContext(r.Context(), "opening a stream failed", "cause", err, "request_id", problem.RequestID(r.Context()))
		return 0, graph.ErrUnavailable
	case len(events) == 0:
		return 0, nil
	case ok && number < events[0].Number: // a larger number is from before the restore of a backup
		return number, nil
	}
	return events[0].Number, nil
}

// sendReleases sends the missed releases, and then each new one.
func (h *Handler) sendReleases(ctx context.Context, s *graph.Subscription, out *eventWriter, last int) {
	beat := time.NewTicker(h.Heartbeat)
	defer beat.Stop()
	for ctx.Err() == nil {
		next, _ := h.executor.NextRelease()
		events, err := h.executor.Publications(ctx, journal.Query{After: last, Limit: publicationBatch})
		if err != nil && ctx.Err() == nil { // retried at the next heartbeat
			h.executor.Log().WarnContext(ctx, "reading new releases for a stream failed", "cause", err, "request_id", problem.RequestID(ctx))
		}
		for _, event := range events {
			result, err := s.Execute(event)
			if err != nil {
				if ctx.Err() == nil {
					h.executor.Log().ErrorContext(ctx, "stream failed", "cause", err, "request_id", problem.RequestID(ctx))
					_ = out.send("event: complete\ndata:\n\n") // the client must not reconnect
				}
				return
			}
			if out.send("event: next\nid: "+event.ID()+"\ndata: "+string(encode(result))+"\n\n") != nil {
				return
			}
			last = event.Number
		}
		if len(events) == publicationBatch { // there may be more
			continue
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				waiting = false
			case <-next:
				waiting = false
			case <-beat.C:
				if out.send(":\n\n") != nil { // a comment
					return
				}
				waiting = err == nil
			}
		}
	}
	// Not "complete", which would keep the client from reconnecting.
	_ = out.send(retryField + ": reconnect to continue\n\n")
}

// retryField is the delay after which clients reconnect.
var retryField = fmt.Sprintf("retry: %d\n", reconnectAfter.Milliseconds())

// eventWriter writes server-sent events.
type eventWriter struct {
	w    http.ResponseWriter
	conn *http.ResponseController

	mu     sync.Mutex // for the deadline
	ending bool
}

func newEventWriter(w http.ResponseWriter, cost int) *eventWriter {
	header := w.Header()
	maps.Copy(header, headersOf(&graph.Result{Cost: cost}, mediaStream, false))
	header.Set("X-Accel-Buffering", "no") // proxies must forward each event at once
	return &eventWriter{w: w, conn: http.NewResponseController(w)}
}

// shortenDeadline limits all sends, including the current one, to one more second.
func (e *eventWriter) shortenDeadline() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ending = true
	_ = e.conn.SetWriteDeadline(time.Now().Add(time.Second))
}

func (e *eventWriter) extendDeadline() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ending {
		return nil
	}
	err := e.conn.SetWriteDeadline(time.Now().Add(sendTime))
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

func (e *eventWriter) send(text string) error {
	if err := e.extendDeadline(); err != nil {
		return err
	}
	if _, err := e.w.Write([]byte(text)); err != nil {
		return err
	}
	return e.conn.Flush()
}
