package graph

import (
	"bytes"
	"errors"
	"net/http"
	"sync"
	"time"

	"palmares/internal/journal"
	"palmares/internal/problem"
)

// Subscriptions are told as the protocol GraphQL over SSE says it, in its mode
// of distinct connections: a request is a stream.

const (
	defaultHeartbeat  = 15 * time.Second
	defaultMaxStreams = 1_000
	// sendTime is for one event or heartbeat to leave: the server's own limit
	// is for answers that end.
	sendTime = 20 * time.Second
)

// streams counts those that are open, and ends them.
type streams struct {
	mu     sync.Mutex
	open   int
	closed bool
	ended  chan struct{}
}

// begin makes room for one more stream.
func (s *streams) begin(most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.open >= most {
		return false
	}
	s.open++
	return true
}

func (s *streams) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

// Close ends every stream and lets none begin; all else is answered as before.
func (h *Handler) Close() {
	h.streams.mu.Lock()
	defer h.streams.mu.Unlock()
	if !h.streams.closed {
		h.streams.closed = true
		close(h.streams.ended)
	}
}

// Streams is how many are open.
func (h *Handler) Streams() int {
	h.streams.mu.Lock()
	defer h.streams.mu.Unlock()
	return h.streams.open
}

// stream tells a caller of releases until either of us leaves.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, req Request, media string) {
	if r.Method == http.MethodHead {
		w.Header().Set("Allow", "GET, POST")
		h.fail(w, r, media, http.StatusMethodNotAllowed, problem.New(problem.BadInput, "A stream has no end whose headers could be told: use GET or POST."))
		return
	}
	s, refusal := h.executor.subscribe(r.Context(), req)
	if refusal != nil {
		h.tell(w, refusal, media)
		return
	}
	if !h.streams.begin(h.MaxStreams) {
		h.executor.log.WarnContext(r.Context(), "a stream is refused", "cause", "there are too many, or the server ends", "request_id", problem.RequestID(r.Context()))
		h.fail(w, r, media, http.StatusServiceUnavailable, problem.New(problem.Unavailable, "No more streams can be opened at the moment."))
		return
	}
	defer h.streams.end()
	// Before the first place is read: whatever begins anew from here on ends us.
	_, epoch := h.executor.news.wait()
	last, wrong := h.firstPlace(r)
	if wrong != nil {
		h.fail(w, r, media, wrong.Code.Status(), wrong)
		return
	}
	out := newEventWriter(w, s.cost)
	if out.comment() == nil { // something, so that the headers leave
		h.tellReleases(r, s, out, last, epoch)
	}
}

// firstPlace is the event after which a stream begins: what its reader saw
// last, or the newest there is.
func (h *Handler) firstPlace(r *http.Request) (int, *problem.Problem) {
	seen := r.Header.Get("Last-Event-ID")
	number, ok := journal.ParseID(seen)
	if seen != "" && !ok {
		return 0, problem.New(problem.BadInput, "Last-Event-ID: is not the id of an event, such as evt_42.")
	}
	newest, err := h.executor.lastPublication()
	if err != nil {
		h.executor.log.ErrorContext(r.Context(), "a stream cannot begin", "cause", err, "request_id", problem.RequestID(r.Context()))
		return 0, problem.New(problem.Unavailable, "The catalog cannot be read at the moment.")
	}
	// An event that never was is of before a backup was restored.
	if ok && number < newest {
		return number, nil
	}
	return newest, nil
}

// tellReleases tells what was missed, and then each release as it comes.
func (h *Handler) tellReleases(r *http.Request, s *subscription, out *eventWriter, last int, epoch <-chan struct{}) {
	beat := time.NewTicker(h.Heartbeat)
	defer beat.Stop()
	for {
		next, _ := h.executor.news.wait()
		events, err := h.executor.publicationsAfter(last)
		if err != nil { // the heartbeat tries again
			h.executor.log.Warn("a stream cannot see new releases", "cause", err, "request_id", problem.RequestID(r.Context()))
		}
		for _, event := range events {
			answer, err := s.tell(event)
			if err != nil {
				h.endEarly(r, out, err)
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
			case <-r.Context().Done(): // the caller left
				return
			case <-h.streams.ended: // we leave; the caller may come again, to another process
				return
			case <-epoch:
				return
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
}

// endEarly ends a stream that cannot go on. Only then it is complete: a reader
// who hears that does not come again.
func (h *Handler) endEarly(r *http.Request, out *eventWriter, err error) {
	if r.Context().Err() == nil {
		h.executor.log.Error("a stream failed", "cause", err, "request_id", problem.RequestID(r.Context()))
		_ = out.complete()
	}
}

// eventWriter writes server-sent events.
type eventWriter struct {
	w    http.ResponseWriter
	conn *http.ResponseController
}

func newEventWriter(w http.ResponseWriter, cost int) *eventWriter {
	header := w.Header()
	for name, values := range headersOf(&Answer{Cost: cost}, mediaStream) {
		header[name] = values
	}
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // proxies must pass each event on at once
	return &eventWriter{w, http.NewResponseController(w)}
}

// next tells an answer.
func (e *eventWriter) next(id string, answer *Answer) error {
	var text bytes.Buffer
	text.WriteString("event: next\nid: " + id + "\ndata: ")
	text.Write(encodeAnswer(answer)) // JSON of ours has no line breaks
	text.WriteString("\n\n")
	return e.send(text.Bytes())
}

// complete tells that nothing follows.
func (e *eventWriter) complete() error { return e.send([]byte("event: complete\ndata:\n\n")) }

// comment says nothing, and that we are still there.
func (e *eventWriter) comment() error { return e.send([]byte(":\n\n")) }

func (e *eventWriter) send(text []byte) error {
	err := e.conn.SetWriteDeadline(time.Now().Add(sendTime))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := e.w.Write(text); err != nil {
		return err
	}
	return e.conn.Flush()
}
