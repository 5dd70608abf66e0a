// Package graphtest makes executors for tests and tools that need no server. Those that do
// start at package servertest.
package graphtest

import (
	"log/slog"

	"palmares/graph"
	"palmares/graph/document"
)

// New returns an executor with the default limits, which logs nothing, unless the config
// says otherwise.
func New(cfg graph.Config) *graph.Executor {
	if cfg.Limits == (document.Limits{}) {
		cfg.Limits = graph.DefaultLimits
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return graph.NewExecutor(cfg)
}
