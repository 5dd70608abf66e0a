package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"palmares/ent"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

// memoryOutsideCache is how much memory the program may use in addition to the
// catalog and its caches before garbage collection becomes more frequent.
const memoryOutsideCache = 100 << 20

// tuneMemory makes garbage collection less frequent: with the default setting, it
// costs a tenth of the throughput. The operator's GOGC and GOMEMLIMIT take precedence.
// It is called again for each release, because a catalog may be larger than the cache.
func tuneMemory(cacheMB int, catalog int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if cache := int64(cacheMB) << 20; os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(max(cache, catalog+cache/4) + memoryOutsideCache)
	}
}

// publish switches the server to a new release, or to none if an empty backup was
// restored. It returns false if it has to be called again.
func (s *Server) publish(release *ent.Release) bool {
	tuneMemory(s.cfg.CacheMB, s.engine.executor.Catalog.Size())
	release = cmp.Or(release, &ent.Release{})
	last, err := s.engine.publish(release)
	if err != nil {
		s.cfg.Log.Warn("publishing a release failed", "release", release.ID, "cause", err)
		return false
	}
	if !store.SameRelease(last, release) { // otherwise the server has just started
		s.purger.Release(last.ID, release.ID)
		s.engine.executor.AnnounceRelease()
		s.cfg.Log.Info("release published", "release", release.ID, "updated_at", release.FeedDate)
	}
	if release.ID > 0 && s.cfg.FilesMB > 0 {
		go s.archive.Prepare(context.Background(), release)
	}
	return true
}

// readyTimeout is how long the database may take to respond to a probe.
const readyTimeout = 2 * time.Second

// health serves the probes of a load balancer or an orchestrator.
type health struct {
	store   *store.Store
	log     *slog.Logger
	release *atomic.Pointer[ent.Release] // the one being served; its ID is 0 before the first
	loaded  func() bool                  // whether the catalog is in memory
	state   *state
}

// The paths of the probes.
const (
	alivePath = "/healthz"
	readyPath = "/readyz"
)

// ServeHTTP implements http.Handler.
func (h *health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == alivePath {
		h.alive(w)
		return
	}
	h.ready(w, r)
}

// alive reports only that the process responds: restarting it would not fix a
// database outage.
func (h *health) alive(w http.ResponseWriter) {
	writeStatus(w, http.StatusOK, map[string]any{"status": "alive"})
}

// ready reports whether the database responds and has all migrations, and the catalog
// is in memory. A server that has a release stays ready while it loads the next one.
func (h *health) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	err := errDraining
	if !h.state.draining.Load() {
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
	lastRequestTimeout = ReadHeaderTimeout
	// drainTimeout is how long responses may take after that.
	drainTimeout = 30 * time.Second
	// backgroundTimeout is how long background work may take to end. It is longer
	// than the timeouts of emails and webhook deliveries.
	backgroundTimeout = 15 * time.Second
	// MaxShutdown is how long a shutdown may take, without DrainDelay.
	MaxShutdown = lastRequestTimeout + drainTimeout + backgroundTimeout
)

// state counts the open connections, and says whether the server shuts down.
type state struct {
	connections atomic.Int64
	draining    atomic.Bool // not ready
	closing     atomic.Bool // responses close their connection
}

// drain shuts down without dropping a request. First, load balancers get time
// to notice that the server is not ready. Then open connections may send one
// more request each: http.Server.Shutdown alone drops a request whose header is
// still arriving, and one sent while its idle connection is being closed.
func (s *Server) drain(server *http.Server) error {
	s.state.draining.Store(true)
	if delay := s.cfg.DrainDelay; delay > 0 {
		s.cfg.Log.Info("shutdown delayed", "delay", delay)
		time.Sleep(delay)
	}
	s.cfg.Log.Info("draining requests", "connections", s.state.connections.Load())
	s.state.closing.Store(true)
	_ = s.listener.Close()
	s.graphql.Close() // streams would not end on their own
	for deadline := time.Now().Add(lastRequestTimeout); s.state.connections.Load() > 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("some requests were still running after %s", drainTimeout)
	}
	return nil
}

// closeWhenDraining makes clients reconnect, to another server.
func (s *state) closeWhenDraining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.closing.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// countConnection is called whenever a connection changes its state.
func (s *state) countConnection(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.connections.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.connections.Add(-1)
	}
}
