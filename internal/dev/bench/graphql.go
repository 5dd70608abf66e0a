package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"time"

	"palmares/ent/tool"
	"palmares/graph"
	"palmares/internal/core/store"
	"palmares/internal/dev/load"
)

const toolFields = `slug name domain categorySlug icpCode pricing price score verifiability tagline canonicalUrl avisUrl alternativesUrl updatedAt`

const toolSQL = `SELECT slug, name, domain, category_slug, icp, pricing, price, score, verifiability, tagline, canonical_url, avis_url, alternatives_url, updated_at FROM tools WHERE retired_at IS NULL `

// toolRow is what a program without GraphQL would encode.
type toolRow struct {
	Slug            string   `json:"slug"`
	Name            string   `json:"name"`
	Domain          string   `json:"domain"`
	Category        string   `json:"category"`
	Icp             string   `json:"icp"`
	Pricing         string   `json:"pricing"`
	Price           string   `json:"price"`
	Score           *float64 `json:"score"`
	Verifiability   *float64 `json:"verifiability"`
	Tagline         string   `json:"tagline"`
	CanonicalURL    string   `json:"canonical_url"`
	AvisURL         *string  `json:"avis_url"`
	AlternativesURL string   `json:"alternatives_url"`
	UpdatedAt       string   `json:"updated_at"`
}

// queryer is a database connection, or ent's.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func readTools(ctx context.Context, db queryer, query string, args ...any) ([]toolRow, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var tools []toolRow
	for rows.Next() {
		var t toolRow
		if err := rows.Scan(&t.Slug, &t.Name, &t.Domain, &t.Category, &t.Icp, &t.Pricing, &t.Price, &t.Score, &t.Verifiability,
			&t.Tagline, &t.CanonicalURL, &t.AvisURL, &t.AlternativesURL, &t.UpdatedAt); err != nil {
			return nil, err
		}
		tools = append(tools, t)
	}
	return tools, rows.Err()
}

// graphql measures the executor without a cache against the same rows read by
// hand-written SQL and encoded with encoding/json.
func (b *bench) graphql(ctx context.Context) error {
	table := load.NewTable("GraphQL, uncached", "database", "ours", "by hand", "ratio", "goal", "allocations", "by hand")
	for _, kind := range kinds {
		progress("%s, GraphQL against SQL by hand", kind)
		db, err := b.newDatabase(ctx, kind)
		if err != nil {
			return err
		}
		if _, err := b.importFeed(db, 5_000); err != nil {
			return err
		}
		s, err := store.Open(ctx, db.Config)
		if err != nil {
			return err
		}
		defer s.Close()
		e := graph.NewExecutor(graph.Config{Catalog: s, Limits: graph.DefaultLimits, Log: slog.New(slog.DiscardHandler)})
		slugs, err := s.Read.Tool.Query().Where(tool.RetiredAtIsNil()).Limit(200).IDs(ctx)
		if err != nil {
			return err
		}
		for _, c := range []struct {
			name, query, sql string
			bySlug           bool
			goal             float64
		}{
			{"50 tools, 14 fields", `{tools(limit: 50) {items {` + toolFields + `}}}`, toolSQL + `ORDER BY untested, score DESC, slug LIMIT 50`, false, 1.7},
			{"one tool by slug", `query ($slug: String!) {tool(slug: $slug) {` + toolFields + `}}`, toolSQL + `AND slug = $1`, true, 1.5},
		} {
			var variables map[string]any
			var args []any
			prepare := func(round int) {
				if c.bySlug {
					slug := slugs[round%len(slugs)]
					variables, args = map[string]any{"slug": slug}, []any{slug}
				}
			}
			ours := func() error {
				if result := e.Execute(ctx, graph.Request{Query: c.query, Variables: variables}); len(result.Errors) > 0 {
					return result.Errors
				}
				return nil
			}
			byHand := func() error {
				tools, err := readTools(ctx, s.Read, c.sql, args...)
				if err != nil {
					return err
				}
				return json.NewEncoder(io.Discard).Encode(tools)
			}
			times, allocations, err := alternate(prepare, ours, byHand)
			if err != nil {
				return err
			}
			table.Add(c.name, kind, times[0].Round(time.Microsecond), times[1].Round(time.Microsecond),
				fmt.Sprintf("%.2f", float64(times[0])/float64(times[1])), c.goal, allocations[0], allocations[1])
		}
	}
	return table.Print(os.Stdout)
}

// alternate runs two functions in turn, so that a noisy machine affects them
// alike, and returns the average time and number of allocations of each.
func alternate(prepare func(round int), functions ...func() error) (times [2]time.Duration, allocations [2]uint64, err error) {
	const warmUp, rounds = 200, 2000
	var before, after runtime.MemStats
	for round := range warmUp + rounds {
		prepare(round)
		for i, f := range functions {
			runtime.ReadMemStats(&before)
			start := time.Now()
			if err := f(); err != nil {
				return times, allocations, err
			}
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if round >= warmUp {
				times[i] += took
				allocations[i] += after.Mallocs - before.Mallocs
			}
		}
	}
	for i := range times {
		times[i] /= rounds
		allocations[i] /= rounds
	}
	return times, allocations, nil
}
