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
	"testing"
	"time"

	"palmares/ent/tool"
	"palmares/graph"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
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
func graphql(t testing.TB) {
	table := load.NewTable("GraphQL, uncached", "database", "ours", "by hand", "ratio", "goal", "allocations", "by hand")
	ctx := t.Context()
	for _, kind := range kinds {
		progress("%s, GraphQL against SQL by hand", kind)
		s := testkit.Open(t, newCatalog(t, kind, 5_000))
		e := graph.NewExecutor(graph.Config{Catalog: s, Limits: graph.DefaultLimits, Log: slog.New(slog.DiscardHandler)})
		slugs, err := s.Read.Tool.Query().Where(tool.RetiredAtIsNil()).Limit(200).IDs(ctx)
		testkit.Check(t, err)
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
			ours := func() {
				if result := e.Execute(ctx, graph.Request{Query: c.query, Variables: variables}); len(result.Errors) > 0 {
					t.Fatal(result.Errors)
				}
			}
			byHand := func() {
				tools, err := readTools(ctx, s.Read, c.sql, args...)
				testkit.Check(t, err)
				testkit.Check(t, json.NewEncoder(io.Discard).Encode(tools))
			}
			times, allocations := alternate(prepare, ours, byHand)
			table.Add(c.name, kind, times[0].Round(time.Microsecond), times[1].Round(time.Microsecond),
				fmt.Sprintf("%.2f", float64(times[0])/float64(times[1])), c.goal, allocations[0], allocations[1])
		}
	}
	table.Print(os.Stdout)
}

// alternate runs two functions in turn, so that a noisy machine affects them
// alike, and returns the average time and number of allocations of each.
func alternate(prepare func(round int), functions ...func()) (times [2]time.Duration, allocations [2]uint64) {
	const warmUp, rounds = 200, 2000
	var before, after runtime.MemStats
	for round := range warmUp + rounds {
		prepare(round)
		for i, f := range functions {
			runtime.ReadMemStats(&before)
			start := time.Now()
			f()
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
	return times, allocations
}
