package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"palmares/ent"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/load"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

const toolFields = `slug name domain categorySlug icpCode pricing price score verifiability tagline canonicalUrl avisUrl alternativesUrl updatedAt`

// The same list with links, over GraphQL.
const linkedQuery = `query ($page: Int!, $score: Float!) {tools(page: $page, filter: {scoreMin: $score}) {meta {total} items {` + toolFields + `
	category {slug label} comparisons {slug title updatedAt toolA {slug name score} toolB {slug name score}}}}}`

// toolRow is a tool as the baseline encodes it.
type toolRow struct {
	Slug            string          `json:"slug"`
	Name            string          `json:"name"`
	Domain          string          `json:"domain"`
	Category        string          `json:"category"`
	Icp             string          `json:"icp"`
	Pricing         string          `json:"pricing"`
	Price           string          `json:"price"`
	Score           *float64        `json:"score"`
	Verifiability   *float64        `json:"verifiability"`
	Tagline         string          `json:"tagline"`
	CanonicalURL    string          `json:"canonical_url"`
	AvisURL         *string         `json:"avis_url"`
	AlternativesURL string          `json:"alternatives_url"`
	UpdatedAt       string          `json:"updated_at"`
	Label           string          `json:"label,omitempty"`
	Comparisons     []comparisonRow `json:"comparisons,omitempty"`
}

type comparisonRow struct {
	Slug      string      `json:"slug"`
	Title     string      `json:"title"`
	UpdatedAt string      `json:"updated_at"`
	Tools     [2]toolLink `json:"tools"`
}

type toolLink struct {
	Slug  string   `json:"slug"`
	Name  string   `json:"name"`
	Score *float64 `json:"score"`
}

type toolList struct {
	Data []toolRow `json:"data"`
	Meta struct {
		Total, Page, Limit, Pages int
	} `json:"meta"`
}

// baseline is a hand-written reader of the catalog without GraphQL. It has
// prepared statements, indexes for them and as many connections as palmares.
type baseline struct {
	db                                                          *sql.DB
	tool, list, listOf, count, countOf, linked, comparisonsOf50 *sql.Stmt
}

const (
	baselineColumns = `t.slug, t.name, t.domain, t.category_slug, t.icp, t.pricing, t.price, t.score, t.verifiability, t.tagline, t.canonical_url, t.avis_url, t.alternatives_url, t.updated_at`
	baselineActive  = ` WHERE t.retired_at IS NULL AND t.score >= $1`
	baselineOrder   = ` ORDER BY t.score DESC, t.slug LIMIT 50 OFFSET $2`
)

func openBaseline(cfg store.Config) (*baseline, error) {
	driver, dsn := "sqlite", "file:"+store.File(cfg.DataDir)+"?_pragma=busy_timeout(5000)"
	if cfg.DatabaseURL != "" {
		driver, dsn = "postgres", cfg.DatabaseURL+"&sslmode=disable&binary_parameters=yes"
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	for _, statement := range []string{
		"CREATE INDEX IF NOT EXISTS baseline_score ON tools (score DESC, slug) WHERE retired_at IS NULL",
		"CREATE INDEX IF NOT EXISTS baseline_category ON tools (category_slug, score DESC, slug) WHERE retired_at IS NULL",
		"ANALYZE tools",
	} {
		if _, err := db.Exec(statement); err != nil {
			return nil, err
		}
	}
	h := &baseline{db: db}
	in := make([]string, 50)
	for i := range in {
		in[i] = fmt.Sprintf("$%d", i+1)
	}
	for target, text := range map[**sql.Stmt]string{
		&h.tool:    "SELECT " + baselineColumns + " FROM tools t WHERE t.retired_at IS NULL AND t.slug = $1",
		&h.list:    "SELECT " + baselineColumns + " FROM tools t" + baselineActive + baselineOrder,
		&h.listOf:  "SELECT " + baselineColumns + " FROM tools t" + baselineActive + " AND t.category_slug = $3" + baselineOrder,
		&h.count:   "SELECT count(*) FROM tools t" + baselineActive,
		&h.countOf: "SELECT count(*) FROM tools t" + baselineActive + " AND t.category_slug = $2",
		&h.linked:  "SELECT " + baselineColumns + ", c.label FROM tools t JOIN categories c ON c.slug = t.category_slug" + baselineActive + baselineOrder,
		&h.comparisonsOf50: `SELECT c.slug, c.title, c.updated_at, a.slug, a.name, a.score, b.slug, b.name, b.score FROM comparisons c
			JOIN tools a ON a.slug = c.tool_a_slug JOIN tools b ON b.slug = c.tool_b_slug
			WHERE c.published AND (c.tool_a_slug IN (` + strings.Join(in, ", ") + `) OR c.tool_b_slug IN (` + strings.Join(in, ", ") + `)) ORDER BY c.updated_at DESC, c.slug`,
	} {
		if *target, err = db.Prepare(text); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func readTools(ctx context.Context, statement *sql.Stmt, labels bool, args ...any) ([]toolRow, error) {
	rows, err := statement.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var tools []toolRow
	for rows.Next() {
		var t toolRow
		columns := []any{&t.Slug, &t.Name, &t.Domain, &t.Category, &t.Icp, &t.Pricing, &t.Price, &t.Score, &t.Verifiability,
			&t.Tagline, &t.CanonicalURL, &t.AvisURL, &t.AlternativesURL, &t.UpdatedAt}
		if labels {
			columns = append(columns, &t.Label)
		}
		if err := rows.Scan(columns...); err != nil {
			return nil, err
		}
		tools = append(tools, t)
	}
	return tools, rows.Err()
}

// readList reads a page of tools with a minimum score, optionally of a category.
func (h *baseline) readList(ctx context.Context, page int, score float64, category string) (list toolList, err error) {
	count, rows, countArgs, rowArgs := h.count, h.list, []any{score}, []any{score, (page - 1) * 50}
	if category != "" {
		count, rows, countArgs, rowArgs = h.countOf, h.listOf, append(countArgs, category), append(rowArgs, category)
	}
	if err := count.QueryRowContext(ctx, countArgs...).Scan(&list.Meta.Total); err != nil {
		return list, err
	}
	list.Meta.Page, list.Meta.Limit, list.Meta.Pages = page, 50, (list.Meta.Total+49)/50
	list.Data, err = readTools(ctx, rows, false, rowArgs...)
	return list, err
}

// readLinked reads a page of tools with their categories and comparisons.
func (h *baseline) readLinked(ctx context.Context, page int, score float64) (list toolList, err error) {
	if err := h.count.QueryRowContext(ctx, score).Scan(&list.Meta.Total); err != nil {
		return list, err
	}
	if list.Data, err = readTools(ctx, h.linked, true, score, (page-1)*50); err != nil || len(list.Data) == 0 {
		return list, err
	}
	args, at := make([]any, 50), map[string]*toolRow{}
	for i := range args {
		t := &list.Data[min(i, len(list.Data)-1)]
		args[i], at[t.Slug] = t.Slug, t
	}
	rows, err := h.comparisonsOf50.QueryContext(ctx, args...)
	if err != nil {
		return list, err
	}
	defer rows.Close()
	for rows.Next() {
		var c comparisonRow
		a, b := &c.Tools[0], &c.Tools[1]
		if err := rows.Scan(&c.Slug, &c.Title, &c.UpdatedAt, &a.Slug, &a.Name, &a.Score, &b.Slug, &b.Name, &b.Score); err != nil {
			return list, err
		}
		for _, link := range c.Tools {
			if t := at[link.Slug]; t != nil && len(t.Comparisons) < 10 {
				t.Comparisons = append(t.Comparisons, c)
			}
		}
	}
	return list, rows.Err()
}

// handle adds the paths of the baseline to a bare server.
func (h *baseline) handle(mux *http.ServeMux, write func(w http.ResponseWriter, body []byte)) {
	add := func(pattern string, read func(r *http.Request, query url.Values) (any, error)) {
		mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) {
			value, err := read(r, r.URL.Query())
			if err != nil {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			body, _ := json.Marshal(value)
			write(w, body)
		})
	}
	number := func(query url.Values, name string) float64 {
		n, _ := strconv.ParseFloat(query.Get(name), 64)
		return n
	}
	add("/list", func(r *http.Request, query url.Values) (any, error) {
		return h.readList(r.Context(), int(number(query, "page")), number(query, "score_min"), query.Get("category"))
	})
	add("/linked", func(r *http.Request, query url.Values) (any, error) {
		return h.readLinked(r.Context(), int(number(query, "page")), number(query, "score_min"))
	})
	add("/tools/{slug}", func(r *http.Request, _ url.Values) (any, error) {
		tools, err := readTools(r.Context(), h.tool, false, r.PathValue("slug"))
		return append(tools, toolRow{})[0], err
	})
}

// cold compares uncached requests with hand-written SQL.
func cold(t testing.TB) {
	table := load.NewTable("uncached, over HTTP, 16 connections, 5,000 tools", "database", "palmares, req/s", "baseline", "ratio", "goal", "p50", "p99", "allocations", "baseline")
	for _, kind := range kinds {
		progress("%s, uncached requests against hand-written SQL", kind)
		cfg, server, key := serveCatalog(t, kind, 5_000)
		other, _ := startBare(t, server, key, cfg)
		categories, slugs := fetchSlugs(t, server.Address, "/api/v1/categories?"), fetchSlugs(t, server.Address, "/api/v1/pricing?limit=200&")
		random := rand.New(rand.NewPCG(1, 2))
		var lists, baselineLists, linked, baselineLinked, tools, baselineTools []string
		for range 5_000 {
			query := fmt.Sprintf("?page=%d&score_min=%.6f", 1+random.IntN(5), random.Float64()*4)
			linked = append(linked, postText("/graphql", fmt.Sprintf(`{"query":%q,"variables":{"page":%d,"score":%.6f}}`, strings.Join(strings.Fields(linkedQuery), " "), 1+random.IntN(5), random.Float64()*4), bearer(key)))
			baselineLinked = append(baselineLinked, getText("/linked"+query, ""))
			if random.IntN(2) == 0 {
				query += "&category=" + categories[random.IntN(len(categories))]
			}
			lists, baselineLists = append(lists, getText("/api/v1/tools"+query, bearer(key))), append(baselineLists, getText("/list"+query, ""))
		}
		for _, slug := range slugs {
			tools, baselineTools = append(tools, getText("/api/v1/tools/"+slug, bearer(key))), append(baselineTools, getText("/tools/"+slug, ""))
		}
		server.Kill()
		allocations := countAllocations(t, cfg, slugs)
		for i, c := range []struct {
			name         string
			ours, theirs []string
			goal         float64
		}{
			{"list of 50, random page and filter", lists, baselineLists, 2},
			{"one tool", tools, baselineTools, 1.3},
			{"GraphQL: 50 tools, categories, comparisons, their tools", linked, baselineLinked, 1.5},
		} {
			ours, theirs := requests{Texts: c.ours, Count: len(c.ours)}, requests{Texts: c.theirs, Count: len(c.theirs)}
			contest{c.name, ours, theirs, c.goal}.runCold(t, table, kind, cfg, key, other.Address, allocations[i])
		}
	}
	table.Print(os.Stdout)
	coldFiltered(t)
	coldLarge(t)
}

// coldFiltered compares filtered lists of a larger catalog with hand-written SQL.
func coldFiltered(t testing.TB) {
	table := load.NewTable("uncached, over HTTP, 16 connections, 60,000 tools", "database", "palmares, req/s", "baseline", "ratio", "goal", "p50", "p99", "allocations", "baseline")
	for _, kind := range kinds {
		progress("%s, uncached lists of 60,000 tools", kind)
		cfg, server, key := serveCatalog(t, kind, 60_000)
		other, _ := startBare(t, server, key, cfg)
		categories := fetchSlugs(t, server.Address, "/api/v1/categories?")
		random := rand.New(rand.NewPCG(3, 4))
		var ours, theirs requests
		for range 1_000 {
			query := fmt.Sprintf("?page=%d&score_min=%.6f", 1+random.IntN(5), random.Float64()*4)
			if random.IntN(2) == 0 {
				query += "&category=" + categories[random.IntN(len(categories))]
			}
			ours.Texts, theirs.Texts = append(ours.Texts, getText("/api/v1/tools"+query, bearer(key))), append(theirs.Texts, getText("/list"+query, ""))
		}
		ours.Count, theirs.Count = len(ours.Texts), len(theirs.Texts)
		server.Kill()
		contest{"list of 50, random page and filter", ours, theirs, 1.8}.runCold(t, table, kind, cfg, key, other.Address, [2]uint64{})
	}
	table.Print(os.Stdout)
}

// runCold measures both sides alternately and adds a row. Each round starts a new
// palmares server and sends each request once, so that none is cached.
func (c contest) runCold(t testing.TB, table *load.Table, kind string, cfg store.Config, key, other string, allocations [2]uint64) {
	progress("  %s", c.name)
	var totals [2]results
	for range 4 {
		server := load.Serve(t, cfg)
		waitUntilReady(t, server.Address)
		for side, r := range []requests{c.ours, c.theirs} {
			r.Address = []string{server.Address, other}[side]
			warmUp := r
			warmUp.Texts, warmUp.Count = []string{getText([]string{"/api/v1/stats", "/body"}[side], bearer(key))}, 50
			warmUp.sendAll(t)
			totals[side].add(r.sendAll(t))
		}
		server.Kill()
	}
	c.addRow(table, kind, totals, allocations[0], allocations[1])
}

// waitUntilReady waits until a server has the catalog in memory.
func waitUntilReady(t testing.TB, address string) {
	wait.Until(t, "the catalog is in memory", func() bool { return strings.Contains(string(fetch(t, "http://"+address+"/readyz")), `"release":`) })
}

// countAllocations returns the allocations of each operation in this process,
// by palmares and by the baseline, without HTTP.
func countAllocations(t testing.TB, cfg store.Config, slugs []string) (counts [3][2]uint64) {
	ctx := t.Context()
	s := testkit.Open(t, cfg)
	e := graphtest.New(graph.Config{Catalog: s})
	following, stop := context.WithCancel(ctx)
	defer stop()
	go e.Follow(following, func(*ent.Release) bool { return true })
	wait.Until(t, "the release is in memory", e.Loaded)
	tool, err := graph.NewOperation(`query ($slug: String!) {tool(slug: $slug) {` + toolFields + `}}`)
	check.OK(t, err)
	h, err := openBaseline(cfg)
	check.OK(t, err)
	defer h.db.Close()
	execute := func(query string, variables map[string]any) {
		if result := e.Execute(ctx, graph.Request{Query: query, Variables: variables}); len(result.Errors) > 0 {
			t.Fatal(result.Errors)
		}
	}
	encode := func(value any, err error) {
		check.OK(t, err)
		_, err = json.Marshal(value)
		check.OK(t, err)
	}
	page := map[string]any{"page": 2, "score": 1.5}
	for i, sides := range [][2]func(){
		{func() {
			execute(`query ($page: Int!, $score: Float!) {tools(page: $page, filter: {scoreMin: $score}) {meta {total page limit pages} items {`+toolFields+`}}}`, page)
		}, func() { list, err := h.readList(ctx, 2, 1.5, ""); encode(list, err) }},
		{func() {
			result := e.Execute(ctx, graph.Request{Operation: tool, Variables: map[string]any{"slug": slugs[7]}})
			if len(result.Errors) > 0 {
				t.Fatal(result.Errors)
			}
		}, func() { tools, err := readTools(ctx, h.tool, false, slugs[7]); encode(tools, err) }},
		{func() { execute(linkedQuery, page) }, func() { list, err := h.readLinked(ctx, 2, 1.5); encode(list, err) }},
	} {
		for side, run := range sides {
			const rounds = 100
			run() // prepares statements and caches documents
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range rounds {
				run()
			}
			runtime.ReadMemStats(&after)
			counts[i][side] = (after.Mallocs - before.Mallocs) / rounds
		}
	}
	return counts
}

// coldLarge measures deep pages, searches and memory with 100,000 tools.
func coldLarge(t testing.TB) {
	table := load.NewTable("100,000 tools", "database", "measured", "goal")
	for _, kind := range kinds {
		progress("%s, 100,000 tools", kind)
		_, server, key := serveCatalog(t, kind, 100_000)
		waitUntilReady(t, server.Address)
		median := func(path string) time.Duration { // {number} makes each request unique
			r := requests{Address: server.Address, Connections: 1, Count: 100, Texts: []string{getText(path, bearer(key))}}
			return r.sendAll(t).P50
		}
		first, deep := median("/api/v1/tools?score_min=0.000"+number), median("/api/v1/tools?page=1000&score_min=0.000"+number)
		table.Add("uncached page 1,000 / page 1", kind, fmt.Sprintf("%.2f (%s / %s)", float64(deep)/float64(first), deep.Round(10*time.Microsecond), first.Round(10*time.Microsecond)), "2.0")
		for name, words := range map[string]string{"one word": "atelier", "two words": "atelier code", "five words": "atelier agent code prix outil", "no match": "introuvable"} {
			table.Add("uncached search, "+name, kind, median("/api/v1/tools?search="+url.QueryEscape(words)+"&score_min=0.000"+number).Round(10*time.Microsecond), "5 or 100 ms")
		}
		all := requests{Address: server.Address, Count: 500}
		for page := range all.Count {
			all.Texts = append(all.Texts, getText(fmt.Sprintf("/api/v1/tools?limit=200&page=%d", page+1), bearer(key)))
		}
		all.sendAll(t)
		resident, _ := memoryOf(server)
		table.Add("resident memory after reading all tools", kind, inMB(resident), "300 MB")
		server.Kill()
	}
	table.Print(os.Stdout)
}
