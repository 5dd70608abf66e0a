// Package graphtest makes executors for tests and tools that need no server. Those that do
// start at package servertest.
package graphtest

import (
	"log/slog"

	"palmares/auth"
	"palmares/graph"
	"palmares/graph/document"
)

// New returns an executor for the callers of package auth, with the default limits, which
// logs nothing, unless the config says otherwise.
func New(cfg graph.Config) *graph.Executor {
	if cfg.Limits == (document.Limits{}) {
		cfg.Limits = graph.DefaultLimits
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.CheckKey == nil {
		cfg.CheckKey = auth.CheckEmbeddings
	}
	return graph.NewExecutor(cfg)
}
