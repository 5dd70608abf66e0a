package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	_ "github.com/lib/pq" // for the baseline

	"palmares/internal/core/store"
)

const toolFields = `slug name domain categorySlug icpCode pricing price score verifiability tagline canonicalUrl avisUrl alternativesUrl updatedAt`

// The same list with links, over GraphQL.
const linkedQuery = `query ($page: Int!, $score: Float!) {tools(page: $page, filter: {scoreMin: $score}) {meta {total} items {` + toolFields +
	` category {slug label} comparisons {slug title updatedAt toolA {slug name score} toolB {slug name score}}}}}`

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
	Data []toolRow                               `json:"data"`
	Meta struct{ Total, Page, Limit, Pages int } `json:"meta"`
}

// baseline is a hand-written reader of the catalog without GraphQL. It has
// prepared statements, indexes for them and as many connections as palmares, and an
// error ends the request.
type baseline struct {
	tool, list, listOf, count, countOf, linked, comparisonsOf50 *sql.Stmt
}

const (
	baselineTools = `SELECT t.slug, t.name, t.domain, t.category_slug, t.icp, t.pricing, t.price, t.score, t.verifiability, t.tagline, ` +
		`t.canonical_url, t.avis_url, t.alternatives_url, t.updated_at`
	baselineActive = ` WHERE t.retired_at IS NULL AND t.score >= $1`
	baselineOrder  = ` ORDER BY t.score DESC, t.slug LIMIT 50 OFFSET $2`
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func openBaseline(cfg store.Config) *baseline {
	driver, dsn := "sqlite", "file:"+store.File(cfg.DataDir)+"?_pragma=busy_timeout(5000)"
	if cfg.DatabaseURL != "" {
		driver, dsn = "postgres", cfg.DatabaseURL+"&sslmode=disable&binary_parameters=yes"
	}
	db := must(sql.Open(driver, dsn))
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	for _, statement := range []string{
		"CREATE INDEX IF NOT EXISTS baseline_score ON tools (score DESC, slug) WHERE retired_at IS NULL",
		"CREATE INDEX IF NOT EXISTS baseline_category ON tools (category_slug, score DESC, slug) WHERE retired_at IS NULL",
		"ANALYZE tools",
	} {
		must(db.Exec(statement))
	}
	var fifty []string
	for i := range 50 {
		fifty = append(fifty, fmt.Sprintf("$%d", i+1))
	}
	in := " IN (" + strings.Join(fifty, ", ") + ")"
	prepare := func(text string) *sql.Stmt { return must(db.Prepare(text)) }
	return &baseline{
		tool:    prepare(baselineTools + " FROM tools t WHERE t.retired_at IS NULL AND t.slug = $1"),
		list:    prepare(baselineTools + " FROM tools t" + baselineActive + baselineOrder),
		listOf:  prepare(baselineTools + " FROM tools t" + baselineActive + " AND t.category_slug = $3" + baselineOrder),
		count:   prepare("SELECT count(*) FROM tools t" + baselineActive),
		countOf: prepare("SELECT count(*) FROM tools t" + baselineActive + " AND t.category_slug = $2"),
		linked:  prepare(baselineTools + ", c.label FROM tools t JOIN categories c ON c.slug = t.category_slug" + baselineActive + baselineOrder),
		comparisonsOf50: prepare(`SELECT c.slug, c.title, c.updated_at, a.slug, a.name, a.score, b.slug, b.name, b.score FROM comparisons c
			JOIN tools a ON a.slug = c.tool_a_slug JOIN tools b ON b.slug = c.tool_b_slug
			WHERE c.published AND (c.tool_a_slug` + in + ` OR c.tool_b_slug` + in + `) ORDER BY c.updated_at DESC, c.slug`),
	}
}

func readTools(ctx context.Context, statement *sql.Stmt, labels bool, args ...any) (tools []toolRow) {
	rows := must(statement.QueryContext(ctx, args...))
	defer rows.Close()
	for rows.Next() {
		var t toolRow
		columns := []any{&t.Slug, &t.Name, &t.Domain, &t.Category, &t.Icp, &t.Pricing, &t.Price, &t.Score, &t.Verifiability,
			&t.Tagline, &t.CanonicalURL, &t.AvisURL, &t.AlternativesURL, &t.UpdatedAt}
		if labels {
			columns = append(columns, &t.Label)
		}
		must(0, rows.Scan(columns...))
		tools = append(tools, t)
	}
	return must(tools, rows.Err())
}

// readList reads a page of tools with a minimum score, optionally of a category.
func (h *baseline) readList(ctx context.Context, page int, score float64, category string) (list toolList) {
	count, rows, countArgs, rowArgs := h.count, h.list, []any{score}, []any{score, (page - 1) * 50}
	if category != "" {
		count, rows, countArgs, rowArgs = h.countOf, h.listOf, append(countArgs, category), append(rowArgs, category)
	}
	must(0, count.QueryRowContext(ctx, countArgs...).Scan(&list.Meta.Total))
	list.Meta.Page, list.Meta.Limit, list.Meta.Pages = page, 50, (list.Meta.Total+49)/50
	list.Data = readTools(ctx, rows, false, rowArgs...)
	return list
}

// readLinked reads a page of tools with their categories and comparisons.
func (h *baseline) readLinked(ctx context.Context, page int, score float64) (list toolList) {
	must(0, h.count.QueryRowContext(ctx, score).Scan(&list.Meta.Total))
	if list.Data = readTools(ctx, h.linked, true, score, (page-1)*50); len(list.Data) == 0 {
		return list
	}
	args, at := make([]any, 50), map[string]*toolRow{}
	for i := range args {
		t := &list.Data[min(i, len(list.Data)-1)]
		args[i], at[t.Slug] = t.Slug, t
	}
	rows := must(h.comparisonsOf50.QueryContext(ctx, args...))
	defer rows.Close()
	for rows.Next() {
		var c comparisonRow
		a, b := &c.Tools[0], &c.Tools[1]
		must(0, rows.Scan(&c.Slug, &c.Title, &c.UpdatedAt, &a.Slug, &a.Name, &a.Score, &b.Slug, &b.Name, &b.Score))
		for _, link := range c.Tools {
			if t := at[link.Slug]; t != nil && len(t.Comparisons) < 10 {
				t.Comparisons = append(t.Comparisons, c)
			}
		}
	}
	return must(list, rows.Err())
}

// handle adds the paths of the baseline to a bare server.
func (h *baseline) handle(mux *http.ServeMux, write func(w http.ResponseWriter, body []byte)) {
	add := func(pattern string, read func(r *http.Request, query url.Values) any) {
		mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) {
			write(w, must(json.Marshal(read(r, r.URL.Query()))))
		})
	}
	position := func(query url.Values) (page int, score float64) {
		return must(strconv.Atoi(query.Get("page"))), must(strconv.ParseFloat(query.Get("score_min"), 64))
	}
	add("/list", func(r *http.Request, query url.Values) any {
		page, score := position(query)
		return h.readList(r.Context(), page, score, query.Get("category"))
	})
	add("/linked", func(r *http.Request, query url.Values) any {
		page, score := position(query)
		return h.readLinked(r.Context(), page, score)
	})
	add("/tools/{slug}", func(r *http.Request, _ url.Values) any {
		return readTools(r.Context(), h.tool, false, r.PathValue("slug"))[0]
	})
}

// cold compares uncached requests with hand-written SQL.
func cold(b *bed) {
	b.compareUncached(5_000, 5_000, 2)
	b.compareUncached(60_000, 1_000, 1.8)
}

func (b *bed) compareUncached(tools, count int, goal float64) {
	b.serve(tools)
	bare := b.startBare()
	categories, slugs := b.fetchSlugs("/api/v1/categories?"), b.fetchSlugs("/api/v1/pricing?limit=200&")
	random := rand.New(rand.NewPCG(1, 2))
	var ours, theirs [3][]string // lists, tools and lists with links
	add := func(i int, palmares, baseline string) {
		ours[i], theirs[i] = append(ours[i], palmares), append(theirs[i], getText(baseline, ""))
	}
	for range count {
		page, score := 1+random.IntN(5), random.Float64()*4
		query := fmt.Sprintf("?page=%d&score_min=%.6f", page, score)
		body := fmt.Sprintf(`{"query":%q,"variables":{"page":%d,"score":%.6f}}`, linkedQuery, page, score)
		add(2, postText("/graphql", body, b.auth()), "/linked"+query)
		if random.IntN(2) == 0 {
			query += "&category=" + categories[random.IntN(len(categories))]
		}
		add(0, getText(list+query, b.auth()), "/list"+query)
	}
	for _, slug := range slugs {
		add(1, getText(list+"/"+slug, b.auth()), "/tools/"+slug)
	}
	for i, c := range []contest{
		{name: "list of 50, random page and filter", goal: goal},
		{name: "one tool", goal: 1.3},
		{name: "GraphQL: 50 tools, categories, comparisons, their tools", goal: 1.5},
	} {
		c.name = fmt.Sprintf("%s; of %d", c.name, tools)
		c.ours, c.theirs = requests{texts: ours[i], count: len(ours[i])}, requests{server: bare, texts: theirs[i], count: len(theirs[i])}
		if i == 0 || tools == 5_000 {
			c.run(b)
		}
	}
}

// large measures deep pages, searches and memory with 100,000 tools.
func large(b *bed) {
	b.serve(100_000)
	first, deep := b.median("?score_min=0.000"+number, 100), b.median("?page=1000&score_min=0.000"+number, 100)
	b.Add("uncached page 1,000 / page 1", b.kind, fmt.Sprintf("%s (%s / %s)", ratio(deep, first), deep, first), "2.0")
	for _, search := range []struct{ name, words string }{
		{"one word", "atelier"}, {"two words", "atelier code"}, {"five words", "atelier agent code prix outil"}, {"no match", "introuvable"},
	} {
		took := b.median("?search="+url.QueryEscape(search.words)+"&score_min=0.000"+number, 100)
		b.Add("uncached search, "+search.name, b.kind, took, "5 or 100 ms")
	}
	all := requests{server: b.server, count: 500}
	for page := range all.count {
		all.texts = append(all.texts, getText(fmt.Sprintf(list+"?limit=200&page=%d", page+1), b.auth()))
	}
	all.send(b)
	resident, _ := memoryOf(b.server)
	b.Add("resident memory after reading all tools", b.kind, inMB(resident), "300 MB")
}

// median returns the median time of requests for a list, which number makes different.
func (b *bed) median(query string, count int) time.Duration {
	r := requests{server: b.server, connections: 1, count: count, texts: []string{getText(list+query, b.auth())}}
	return r.send(b).p50.Round(10 * time.Microsecond)
}
