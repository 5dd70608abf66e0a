package graph

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"palmares/auth"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/problem"
)

// Subscriptions follow the GraphQL over SSE protocol in its "distinct
// connections" mode: each request is a stream.

const (
	defaultHeartbeat  = 15 * time.Second
	defaultMaxStreams = 1_000
	// sendTime is the time limit for one event or heartbeat: the server's own
	// limit is meant for responses that end.
	sendTime = 20 * time.Second
	// defaultStreamTime is how long a stream may last. A client that reconnects
	// continues after the last event that it saw.
	defaultStreamTime = time.Hour
	// defaultCheckEvery makes streams of a key that was revoked end within 2
	// seconds: what is known of a key is up to a second old.
	defaultCheckEvery = 500 * time.Millisecond
	// reconnectAfter is how long clients wait before they reconnect.
	reconnectAfter = 2 * time.Second
)

// StreamConfig is what streams need to know about their callers. Zero values
// stand for the defaults.
type StreamConfig struct {
	// Network returns what anonymous callers are counted by; by default, the
	// address of the peer.
	Network func(*http.Request) string
	// Recheck returns a caller with the plan that it has by now, or why its key
	// is refused. By default, callers never change.
	Recheck func(context.Context, auth.Caller) (auth.Caller, error)
	// Time is how long a stream lasts at most; by default, an hour.
	Time time.Duration
	// CheckEvery is how often callers are rechecked.
	CheckEvery time.Duration
}

// ConfigureStreams must be called before the first request.
func (h *Handler) ConfigureStreams(config StreamConfig) { h.streams.config = config }

// streams limits and ends the open streams.
type streams struct {
	config StreamConfig

	mu     sync.Mutex
	open   int
	by     map[string]int // of each caller
	closed bool
	ended  chan struct{}
}

// begin reserves a place for a stream. It returns how to free it again, or why
// there is none.
func (s *streams) begin(caller string, limit, total int) (end func(), refusal error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errStreamsClosed
	case s.by[caller] >= limit:
		return nil, errCallersStreams
	case s.open >= total:
		return nil, errAllStreams
	}
	if s.by == nil {
		s.by = map[string]int{}
	}
	s.open++
	s.by[caller]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
		if s.by[caller]--; s.by[caller] == 0 {
			delete(s.by, caller)
		}
	}, nil
}

var (
	errStreamsClosed  = errors.New("the server is shutting down")
	errCallersStreams = errors.New("the caller has too many streams")
	errAllStreams     = errors.New("the server has too many streams")
)

// Close ends all streams and refuses new ones. Other requests are served as
// before.
func (h *Handler) Close() {
	h.streams.mu.Lock()
	defer h.streams.mu.Unlock()
	if !h.streams.closed {
		h.streams.closed = true
		close(h.streams.ended)
	}
}

// Streams returns how many streams are open.
func (h *Handler) Streams() int {
	h.streams.mu.Lock()
	defer h.streams.mu.Unlock()
	return h.streams.open
}

// stream sends each release to a caller until one of the two leaves.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, req Request, media string) {
	if r.Method == http.MethodHead {
		w.Header().Set("Allow", "GET, POST")
		h.fail(w, r, media, http.StatusMethodNotAllowed, problem.New(problem.BadInput, "Streams do not support HEAD: use GET or POST."))
		return
	}
	s, refusal := h.executor.subscribe(r.Context(), req)
	if refusal != nil {
		h.tell(w, refusal, media)
		return
	}
	caller := auth.CallerFrom(r.Context())
	leave, err := h.streams.begin(h.countedAs(r, caller), caller.Plan.Terms().Streams, h.MaxStreams)
	if err != nil {
		h.refuseStream(w, r, media, caller.Plan, err)
		return
	}
	defer leave()
	// The epoch is taken before the first position is read, so that a new epoch
	// from here on ends the stream.
	_, epoch := h.executor.news.wait()
	last, wrong := h.firstPlace(r)
	if wrong != nil {
		h.fail(w, r, media, wrong.Code.Status(), wrong)
		return
	}
	out := newEventWriter(w, s.cost)
	if out.begin(last) != nil { // which also sends the headers
		return
	}
	ctx, end := context.WithCancelCause(r.Context())
	supervised := make(chan struct{})
	go func() {
		defer close(supervised)
		h.supervise(ctx, caller, epoch, func(why error) {
			end(why)
			out.hurry() // a client that does not read must not delay the end
		})
	}()
	h.sendReleases(ctx, s, out, last)
	end(nil)
	<-supervised // the connection is not ours to touch any longer
}

// countedAs is whose streams a stream is counted among: an account's, with all
// of its keys, or those of an anonymous caller's network.
func (h *Handler) countedAs(r *http.Request, caller auth.Caller) string {
	if caller.Key != "" {
		return "account " + strconv.Itoa(caller.Account)
	}
	if network := h.streams.config.Network; network != nil {
		return "network " + network(r)
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return "network " + host
}

// refuseStream responds where there is no place for one more stream. That is
// never an outage: whatever the reason, the client has to wait.
func (h *Handler) refuseStream(w http.ResponseWriter, r *http.Request, media string, plan auth.Plan, why error) {
	message, after := "", ""
	switch limit := plan.Terms().Streams; {
	case errors.Is(why, errCallersStreams) && plan == auth.Anonymous:
		message, after = fmt.Sprintf("Too many streams: without an API key, %d may be open at the same time from one network. Close one, or send an API key.", limit), "60"
	case errors.Is(why, errCallersStreams):
		message, after = fmt.Sprintf("Too many streams: your plan allows %d at the same time. Close one before you open another.", limit), "60"
	case errors.Is(why, errAllStreams):
		h.executor.log.WarnContext(r.Context(), "stream refused", "cause", why, "open", h.MaxStreams, "request_id", problem.RequestID(r.Context()))
		message, after = "The server has no room for more streams at the moment. Try again later.", "30"
	default:
		message, after = "The server is restarting. Open the stream again in a moment.", "5"
	}
	w.Header().Set("Retry-After", after)
	h.fail(w, r, media, http.StatusTooManyRequests, problem.New(problem.TooMany, "%s", message))
}

var (
	errStreamTime  = errors.New("the stream has reached its maximum duration")
	errNewEpoch    = errors.New("release numbers have started again")
	errPlanChanged = errors.New("the plan of the account allows fewer streams than before")
)

// supervise ends a stream when it has to, unless its context ends before.
func (h *Handler) supervise(ctx context.Context, caller auth.Caller, epoch <-chan struct{}, end func(error)) {
	// Streams that were opened together end at different times.
	longest := cmp.Or(h.streams.config.Time, defaultStreamTime)
	lifetime := time.NewTimer(longest - rand.N(longest/10+1))
	defer lifetime.Stop()
	check := time.NewTicker(cmp.Or(h.streams.config.CheckEvery, defaultCheckEvery))
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.streams.ended:
			end(errStreamsClosed)
			return
		case <-epoch:
			end(errNewEpoch)
			return
		case <-lifetime.C:
			end(errStreamTime)
			return
		case <-check.C:
			if err := h.recheck(ctx, caller); err != nil {
				end(err)
				return
			}
		}
	}
}

// recheck returns why a caller may not keep a stream that it could open. After
// a change to a smaller plan all of its streams end: as many reconnect as the
// new plan allows.
func (h *Handler) recheck(ctx context.Context, caller auth.Caller) error {
	if h.streams.config.Recheck == nil || caller.Key == "" {
		return nil
	}
	now, err := h.streams.config.Recheck(ctx, caller)
	if err == nil && now.Plan.Terms().Streams < caller.Plan.Terms().Streams {
		return errPlanChanged
	}
	return err
}

// firstPlace returns the event after which a stream starts: the last one that
// the client saw, or the newest.
func (h *Handler) firstPlace(r *http.Request) (int, *problem.Problem) {
	seen := r.Header.Get("Last-Event-ID")
	number, ok := journal.ParseID(seen)
	if seen != "" && !ok {
		return 0, problem.New(problem.BadInput, "Last-Event-ID: is not the id of an event, such as evt_42.")
	}
	newest, err := h.executor.lastPublication(r.Context())
	if err != nil {
		h.executor.log.ErrorContext(r.Context(), "opening a stream failed", "cause", err, "request_id", problem.RequestID(r.Context()))
		return 0, problem.New(problem.Unavailable, "The catalog cannot be read at the moment.")
	}
	// An event that does not exist is from before a backup was restored.
	if ok && number < newest {
		return number, nil
	}
	return newest, nil
}

// sendReleases sends the releases that were missed, and then each new one.
func (h *Handler) sendReleases(ctx context.Context, s *subscription, out *eventWriter, last int) {
	beat := time.NewTicker(h.Heartbeat)
	defer beat.Stop()
	for ctx.Err() == nil {
		next, _ := h.executor.news.wait()
		events, err := h.executor.publicationsAfter(ctx, last)
		if err != nil && ctx.Err() == nil { // the heartbeat tries again
			h.executor.log.WarnContext(ctx, "reading new releases for a stream failed", "cause", err, "request_id", problem.RequestID(ctx))
		}
		for _, event := range events {
			answer, err := s.tell(event)
			if err != nil {
				h.endEarly(ctx, out, err)
				return
			}
			if out.next(event.ID(), answer) != nil {
				return
			}
			last = event.Number
		}
		if len(events) == publicationsAtOnce { // there are more
			continue
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				waiting = false
			case <-next:
				waiting = false
			case <-beat.C:
				if out.comment() != nil {
					return
				}
				waiting = err == nil
			}
		}
	}
	// Without "complete", which would keep the client from coming back.
	_ = out.reconnect()
}

// endEarly ends a stream that cannot continue. Only then it is complete: a
// client that receives "complete" does not reconnect.
func (h *Handler) endEarly(ctx context.Context, out *eventWriter, err error) {
	if ctx.Err() == nil {
		h.executor.log.ErrorContext(ctx, "stream failed", "cause", err, "request_id", problem.RequestID(ctx))
		_ = out.complete()
	}
}

// eventWriter writes server-sent events.
type eventWriter struct {
	w    http.ResponseWriter
	conn *http.ResponseController

	mu      sync.Mutex // for the deadline
	hurried bool
}

func newEventWriter(w http.ResponseWriter, cost int) *eventWriter {
	header := w.Header()
	for name, values := range headersOf(&Answer{Cost: cost}, mediaStream) {
		header[name] = values
	}
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // proxies must forward each event at once
	return &eventWriter{w: w, conn: http.NewResponseController(w)}
}

// begin sends where the stream starts, so that a client that reconnects before
// the first event does not miss one, and how soon it may do so.
func (e *eventWriter) begin(last int) error {
	text := retryField
	if last > 0 {
		text += "id: " + (&journal.Event{Number: last}).ID() + "\n"
	}
	return e.send([]byte(text + "\n"))
}

var retryField = fmt.Sprintf("retry: %d\n", reconnectAfter.Milliseconds())

// next sends a response.
func (e *eventWriter) next(id string, answer *Answer) error {
	var text bytes.Buffer
	text.WriteString("event: next\nid: " + id + "\ndata: ")
	text.Write(encodeAnswer(answer)) // JSON of ours has no line breaks
	text.WriteString("\n\n")
	return e.send(text.Bytes())
}

// complete sends that nothing follows.
func (e *eventWriter) complete() error { return e.send([]byte("event: complete\ndata:\n\n")) }

// comment shows that the connection is alive.
func (e *eventWriter) comment() error { return e.send([]byte(":\n\n")) }

// reconnect sends that the stream ends here, but continues for a client that
// comes back.
func (e *eventWriter) reconnect() error {
	return e.send([]byte(retryField + ": reconnect to continue\n\n"))
}

// hurry limits what is being sent, and what is sent from now on, to a second
// altogether.
func (e *eventWriter) hurry() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hurried = true
	_ = e.conn.SetWriteDeadline(time.Now().Add(time.Second))
}

// allow gives what is sent next its time.
func (e *eventWriter) allow() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.hurried {
		return nil
	}
	err := e.conn.SetWriteDeadline(time.Now().Add(sendTime))
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

func (e *eventWriter) send(text []byte) error {
	if err := e.allow(); err != nil {
		return err
	}
	if _, err := e.w.Write(text); err != nil {
		return err
	}
	return e.conn.Flush()
}
