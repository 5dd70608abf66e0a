package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"text/tabwriter"
	"time"

	"palmares/ent/tool"
	"palmares/graph"
	"palmares/internal/catalog/feed"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// The GraphQL part: the executor, uncached, against the same rows read by
// hand-written SQL and encoded with encoding/json. Both sides take turns, so
// that a noisy machine disturbs them alike.

const toolFields = `slug name domain categorySlug icpCode pricing price score verifiability tagline canonicalUrl avisUrl alternativesUrl updatedAt`

const toolSQL = `SELECT slug, name, domain, category_slug, icp, pricing, price, score, verifiability, tagline, canonical_url, avis_url, alternatives_url, updated_at FROM tools WHERE retired_at IS NULL `

// ratio is one row of the second table.
type ratio struct {
	what, database       string
	ours, byHand         time.Duration // for one answer
	oursMalloc, byMalloc uint64        // allocations for one answer
	goal                 float64
}

func (b *bench) graphql(ctx context.Context) error {
	address, drop, err := testkit.Scratch(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = drop() }()
	for database, cfg := range map[string]store.Config{
		"SQLite":     {DataDir: b.dir + "/graphql"},
		"PostgreSQL": {DatabaseURL: address},
	} {
		if err := b.compare(ctx, database, cfg); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) compare(ctx context.Context, database string, cfg store.Config) error {
	fmt.Fprintf(os.Stderr, "%s, GraphQL against SQL by hand\n", database)
	s, err := store.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Migrate(ctx); err != nil {
		return err
	}
	file, err := os.Open(b.feed(5_000))
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := feed.Import(ctx, s, file, feed.Options{}); err != nil {
		return err
	}
	e := graph.NewExecutor(graph.Config{Catalog: s, Limits: graph.DefaultLimits, Log: slog.New(slog.DiscardHandler)})
	slugs, err := s.Read.Tool.Query().Where(tool.RetiredAtIsNil()).Limit(200).IDs(ctx)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		what    string
		query   string
		sql     string
		byRound func(round int) (map[string]any, []any)
		goal    float64
	}{
		{"50 tools, 14 fields", `{tools(limit: 50) {items {` + toolFields + `}}}`, toolSQL + `ORDER BY untested, score DESC, slug LIMIT 50`,
			func(int) (map[string]any, []any) { return nil, nil }, 1.7},
		{"one tool by slug", `query ($slug: String!) {tool(slug: $slug) {` + toolFields + `}}`, toolSQL + `AND slug = $1`,
			func(round int) (map[string]any, []any) {
				slug := slugs[round%len(slugs)]
				return map[string]any{"slug": slug}, []any{slug}
			}, 1.5},
	} {
		ours := func(round int) error {
			variables, _ := c.byRound(round)
			if answer := e.Execute(ctx, graph.Request{Query: c.query, Variables: variables}); len(answer.Errors) > 0 {
				return answer.Errors
			}
			return nil
		}
		byHand := func(round int) error {
			_, args := c.byRound(round)
			return readByHand(ctx, s, c.sql, args)
		}
		r, err := race(ours, byHand)
		if err != nil {
			return err
		}
		r.what, r.database, r.goal = c.what, database, c.goal
		b.ratios = append(b.ratios, r)
	}
	return nil
}

// handTool is what a program without GraphQL would encode.
type handTool struct {
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

func readByHand(ctx context.Context, s *store.Store, query string, args []any) error {
	tools, err := handTools(ctx, s.Read, query, args...)
	if err != nil {
		return err
	}
	return json.NewEncoder(io.Discard).Encode(tools)
}

const (
	warmUp = 200
	rounds = 2000
)

// race lets two sides take turns and measures each.
func race(ours, byHand func(round int) error) (ratio, error) {
	var r ratio
	var before, after runtime.MemStats
	for round := range warmUp + rounds {
		for i, side := range []func(int) error{ours, byHand} {
			runtime.ReadMemStats(&before)
			start := time.Now()
			if err := side(round); err != nil {
				return r, err
			}
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			switch {
			case round < warmUp:
			case i == 0:
				r.ours, r.oursMalloc = r.ours+took, r.oursMalloc+after.Mallocs-before.Mallocs
			default:
				r.byHand, r.byMalloc = r.byHand+took, r.byMalloc+after.Mallocs-before.Mallocs
			}
		}
	}
	r.ours, r.byHand, r.oursMalloc, r.byMalloc = r.ours/rounds, r.byHand/rounds, r.oursMalloc/rounds, r.byMalloc/rounds
	return r, nil
}

func (b *bench) printRatios(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| GraphQL, uncached\t| database\t| ours\t| by hand\t| ratio\t| goal\t| allocations\t| by hand\t|")
	fmt.Fprintln(table, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, r := range b.ratios {
		fmt.Fprintf(table, "| %s\t| %s\t| %s\t| %s\t| %.2f\t| %.1f\t| %d\t| %d\t|\n", r.what, r.database,
			r.ours.Round(time.Microsecond), r.byHand.Round(time.Microsecond), float64(r.ours)/float64(r.byHand), r.goal, r.oursMalloc, r.byMalloc)
	}
	return table.Flush()
}
