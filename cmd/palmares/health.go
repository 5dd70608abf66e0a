package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"palmares/ent"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

// readyTimeout is how long a database may take to show that it answers.
const readyTimeout = 2 * time.Second

// health answers the probes of whoever runs the server.
type health struct {
	store    *store.Store
	log      *slog.Logger
	release  atomic.Pointer[ent.Release] // the newest that this server has seen
	draining atomic.Bool
}

// alive tells that the process answers, and nothing more: restarting it would
// not bring a lost database back.
func (h *health) alive(w http.ResponseWriter, _ *http.Request) {
	writeStatus(w, http.StatusOK, map[string]any{"status": "alive"})
}

// ready tells that requests can be served: the database answers and has
// every migration.
func (h *health) ready(w http.ResponseWriter, r *http.Request) {
	if h.draining.Load() {
		h.notReady(w, r, errEnding)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if err := h.store.Ready(ctx); err != nil {
		h.notReady(w, r, err)
		return
	}
	status := map[string]any{"status": "ready", "release": 0}
	if release := h.release.Load(); release != nil {
		status["release"], status["updated_at"] = release.ID, release.FeedDate
	}
	writeStatus(w, http.StatusOK, status)
}

var errEnding = errors.New("the server is ending")

func (h *health) notReady(w http.ResponseWriter, r *http.Request, why error) {
	h.log.WarnContext(r.Context(), "not ready", "cause", why, "request_id", problem.RequestID(r.Context()))
	writeStatus(w, http.StatusServiceUnavailable, map[string]any{"error": why.Error()})
}

func writeStatus(w http.ResponseWriter, code int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// tools is how many tools the newest release has.
func (h *health) tools() int {
	if release := h.release.Load(); release != nil {
		return release.ToolsTotal
	}
	return 0
}
