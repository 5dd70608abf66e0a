package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"palmares/cmd/palmares/commands"
	"palmares/ent"
	"palmares/internal/core/middleware"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

// newLogger logs text to a terminal, and buffered JSON lines to anything else. The
// buffer is nil on a terminal.
func newLogger(w io.Writer) (*slog.Logger, *middleware.LogBuffer) {
	if commands.IsTerminal(w) {
		return slog.New(slog.NewTextHandler(w, nil)), nil
	}
	buffer := middleware.NewLogBuffer(w)
	return slog.New(slog.NewJSONHandler(buffer, nil)), buffer
}

// setDefaultLogger sets the logger of code that has none, and discards what the HTTP
// clients of the standard library log: webhook receivers could write anything there, as
// often as they like. Servers have their own ErrorLog.
func setDefaultLogger(l *slog.Logger) {
	slog.SetDefault(l)
	log.SetOutput(io.Discard)
}

// memoryOutsideCache is how much memory the program may use in addition to the
// catalog and its caches before garbage collection becomes more frequent.
const memoryOutsideCache = 100 << 20

// tuneMemory makes garbage collection less frequent: with the default setting, it
// costs a tenth of the throughput. The operator's GOGC and GOMEMLIMIT take precedence.
// It is called again for each release, because a catalog may be larger than the cache.
func tuneMemory(s *settings, catalog int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if cache := int64(s.CacheMB) << 20; os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(max(cache, catalog+cache/4) + memoryOutsideCache)
	}
}

func listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, listenError(address, err)
	}
	return listener, nil
}

func listenError(address string, err error) error {
	reason := "the address is not valid"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		reason = "the address is already in use"
	case errors.Is(err, syscall.EACCES):
		reason = "the port requires privileges; use one above 1023"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		reason = "this machine does not have that address"
	}
	return fmt.Errorf("cannot listen on %s: %s", address, reason)
}

// publish switches the server to a new release, or to none if an empty backup was
// restored. It returns false if it has to be called again.
func (p *program) publish(release *ent.Release) bool {
	tuneMemory(p.settings, p.executor.CatalogSize())
	release = cmp.Or(release, &ent.Release{})
	last := p.health.release.Load()
	switch {
	case store.SameRelease(last, release): // the server has just started
		p.prepareFiles(release)
		return true
	case release.ID <= last.ID: // a backup was restored, or the history pruned
		p.cache.Restart(release.ID)
		p.executor.EndStreams()
	default:
		if err := p.cache.Renew(release.ID); err != nil {
			p.log.Warn("publishing a release failed", "release", release.ID, "cause", err)
			return false
		}
	}
	p.health.release.Store(release)
	p.purger.Release(last.ID, release.ID)
	p.executor.AnnounceRelease()
	p.prepareFiles(release)
	p.log.Info("release published", "release", release.ID, "updated_at", release.FeedDate)
	return true
}

// prepareFiles writes the files of a release in the background.
func (p *program) prepareFiles(release *ent.Release) {
	if release.ID > 0 {
		go p.files.Prepare(context.Background(), release)
	}
}

// readyTimeout is how long the database may take to respond to a probe.
const readyTimeout = 2 * time.Second

// health serves the probes of a load balancer or an orchestrator.
type health struct {
	store    *store.Store
	log      *slog.Logger
	release  atomic.Pointer[ent.Release] // the one being served; its ID is 0 before the first
	loaded   func() bool                 // whether the catalog is in memory
	draining atomic.Bool
}

// alive reports only that the process responds: restarting it would not fix a
// database outage.
func (h *health) alive(w http.ResponseWriter, _ *http.Request) {
	writeStatus(w, http.StatusOK, map[string]any{"status": "alive"})
}

// ready reports whether the database responds and has all migrations, and the catalog
// is in memory. A server that has a release stays ready while it loads the next one.
func (h *health) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	err := errDraining
	if !h.draining.Load() {
		err = h.store.Ready(ctx)
	}
	if err == nil && !h.loaded() {
		err = errLoading
	}
	if err != nil {
		h.log.WarnContext(r.Context(), "not ready", "cause", err, "request_id", problem.RequestID(r.Context()))
		writeStatus(w, http.StatusServiceUnavailable, map[string]any{"error": err.Error()})
		return
	}
	release := h.release.Load()
	status := map[string]any{"status": "ready", "release": release.ID}
	if release.ID > 0 {
		status["updated_at"] = release.FeedDate
	}
	writeStatus(w, http.StatusOK, status)
}

var (
	errDraining = errors.New("the server is shutting down")
	errLoading  = errors.New("the catalog is being loaded")
)

func writeStatus(w http.ResponseWriter, code int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

const (
	// lastRequestTimeout is how long open connections may still send a request
	// after a shutdown started. The header of a request that has started to arrive
	// must be complete by then anyway.
	lastRequestTimeout = readHeaderTimeout
	// drainTimeout is how long responses may take after that.
	drainTimeout = 30 * time.Second
	// backgroundTimeout is how long background work may take to end. It is longer
	// than the timeouts of emails and webhook deliveries.
	backgroundTimeout = 15 * time.Second
)

// drain shuts down without dropping a request. First, load balancers get time
// to notice that the server is not ready. Then open connections may send one
// more request each: http.Server.Shutdown alone drops a request whose header is
// still arriving, and one sent while its idle connection is being closed.
func (p *program) drain() error {
	p.health.draining.Store(true)
	if delay := p.settings.DrainDelay; delay > 0 {
		p.log.Info("shutdown delayed", "delay", delay)
		time.Sleep(delay)
	}
	p.log.Info("draining requests", "connections", p.connections.Load())
	p.closing.Store(true)
	_ = p.listener.Close()
	p.graphql.Close() // streams would not end on their own
	for deadline := time.Now().Add(lastRequestTimeout); p.connections.Load() > 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := p.server.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("some requests were still running after %s", drainTimeout)
	}
	return nil
}

// closeWhenDraining makes clients reconnect, to another server.
func (p *program) closeWhenDraining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.closing.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// countConnection is called whenever a connection changes its state.
func (p *program) countConnection(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		p.connections.Add(1)
	case http.StateClosed, http.StateHijacked:
		p.connections.Add(-1)
	}
}
