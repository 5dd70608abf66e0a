package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"palmares/internal/catalog/feed"
	"palmares/internal/dev/load"
)

const (
	rate               = 150 // requests per second, however slow responses are
	clientTimeout      = 12 * time.Second
	requestsPerAddress = 50 // of 100 per day
)

// query is a kind of request. Cached ones must always succeed; others may get a
// 503 while the database is unavailable.
type query struct {
	name   string
	cached bool
	keyed  bool // sent with the key, whose requests are counted
	path   string
	body   string // of a POST
}

const graphql = `{feed{release updatedAt} stats{toolsTotal toolsAvgScore} categories{label} ` +
	`tools(limit:20){items{slug tagline updatedAt} meta{total}} comparisons(limit:10){items{title updatedAt}}}`

// queries are sent in turn. {number} is the number of the request, which makes
// it unique.
var queries = []query{
	{name: "tools", cached: true, path: "/api/v1/tools?limit=50"},
	{name: "prices, with a key", cached: true, keyed: true, path: "/api/v1/pricing?limit=50"},
	{name: "GraphQL", cached: true, path: "/graphql", body: `{"query":"` + graphql + `"}`},
	{name: "tools, uncached", path: "/api/v1/tools?score_min=0.{number}"},
	{name: "statistics", cached: true, path: "/api/v1/stats"},
	{name: "categories", cached: true, path: "/api/v1/categories"},
	{name: "prices, with a key", cached: true, keyed: true, path: "/api/v1/pricing?limit=50"},
	{name: "comparisons", cached: true, path: "/api/v1/comparatifs"},
	{name: "GraphQL", cached: true, path: "/graphql", body: `{"query":"` + graphql + `"}`},
	{name: "GraphQL, uncached", path: "/graphql", body: `{"query":"query Q{number} ` + graphql + `"}`},
}

// sample is the result of a request.
type sample struct {
	query   *query
	at      time.Time // when it was due
	took    time.Duration
	status  int // 0 without a response
	failure string
	tries   int    // servers that nginx tried
	server  string // address of the one that responded
	mixed   bool   // the response is from several releases
	older   bool   // than one that the same server has shown before
}

// refused reports whether an uncached read got a 503, as it may.
func (s *sample) refused() bool { return s.status == http.StatusServiceUnavailable && !s.query.cached }

// generator sends requests at a steady rate.
type generator struct {
	system  *system
	client  *http.Client
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	samples []*sample
}

var requestNumber atomic.Int64

func startLoad(ctx context.Context, s *system) *generator {
	ctx, cancel := context.WithCancel(ctx)
	g := &generator{system: s, cancel: cancel, client: &http.Client{
		Timeout:   clientTimeout,
		Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true, IdleConnTimeout: time.Minute},
	}}
	g.running.Go(func() { g.run(ctx) })
	return g
}

// end stops the load and returns the results after the last response.
func (g *generator) end() []*sample {
	g.cancel()
	g.running.Wait()
	g.client.CloseIdleConnections()
	return g.samples
}

func (g *generator) run(ctx context.Context) {
	start := time.Now()
	for i := 0; ; i++ {
		due := start.Add(time.Duration(i) * time.Second / rate)
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(due)):
		}
		n := requestNumber.Add(1)
		g.running.Go(func() {
			s := g.send(n, due)
			g.mu.Lock()
			defer g.mu.Unlock()
			g.samples = append(g.samples, s)
		})
	}
}

func (g *generator) send(n int64, due time.Time) *sample {
	q := &queries[n%int64(len(queries))]
	s := &sample{query: q, at: due, tries: 1}
	before := g.system.shown.snapshot()
	numbered := func(text string) string { return strings.ReplaceAll(text, "{number}", fmt.Sprintf("%07d", n)) }
	name, value := "X-Forwarded-For", clientAddress(n/requestsPerAddress)
	if q.keyed {
		name, value = "Authorization", "Bearer "+g.system.key
	}
	response, body, err := load.Do(context.Background(), g.client, g.system.base+numbered(q.path), numbered(q.body), name, value)
	s.took = time.Since(due)
	if err != nil {
		s.failure = err.Error()
		return s
	}
	s.status = response.StatusCode
	tried := strings.Split(response.Header.Get(servedBy), ", ")
	s.tries, s.server = len(tried), tried[len(tried)-1]
	if s.status != http.StatusOK {
		s.failure = fmt.Sprintf("%d %.80s", s.status, body)
		return s
	}
	edition, err := editionOf(response.Header.Get("X-Service-Updated-At"), body)
	if err != nil {
		s.mixed, s.failure = true, err.Error()
	}
	if edition == noEdition {
		if s.failure = fmt.Sprintf("%.80s", body); bytes.Contains(body, []byte(`"UNAVAILABLE"`)) || bytes.Contains(body, []byte(`"TIMEOUT"`)) {
			s.status = http.StatusServiceUnavailable // as GraphQL reports it
		}
		return s
	}
	if edition < before[s.server] {
		s.older, s.failure = true, "an older release than before"
	}
	g.system.shown.add(s.server, edition)
	return s
}

func clientAddress(n int64) string { return fmt.Sprintf("100.%d.%d.%d", 64+n>>16&63, n>>8&255, n&255) }

// newestShown has the newest edition that each server has shown, by address. A
// later request must not get an older one.
type newestShown map[string]int

var newestMu sync.Mutex

func (n newestShown) snapshot() map[string]int {
	newestMu.Lock()
	defer newestMu.Unlock()
	return maps.Clone(n)
}

func (n newestShown) add(server string, edition int) {
	newestMu.Lock()
	defer newestMu.Unlock()
	n[server] = max(n[server], edition)
}

// An edition is a catalog with its number in every line, so that a response
// from two releases is recognised.

var firstDay = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func editionDate(n int) string { return firstDay.AddDate(0, 0, n).Format(time.DateOnly) }

// editionScore is the score of every tool, and so the average.
func editionScore(n int) float64 { return float64(10+n%80) / 10 }

// writeEdition writes the feed of an edition.
func writeEdition(dir string, n int) (path string, err error) {
	path = filepath.Join(dir, fmt.Sprintf("edition-%d.ndjson", n))
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	mark, score := fmt.Sprintf("édition %d.", n), editionScore(n)
	out := feed.NewWriter(file, editionDate(n))
	out.Write(&feed.Category{Slug: "code", Label: "Code, " + mark})
	slug := func(i int) string { return fmt.Sprintf("outil-%d", i) }
	for i := range 30 {
		out.Write(&feed.Tool{
			Slug: slug(i), Name: fmt.Sprintf("Outil %d", i), Domain: slug(i) + ".example", Category: "code",
			ICP: "mixte", Pricing: "payant", Price: fmt.Sprintf("%d €/mois", 10+n), Score: &score,
			Tagline: "Outil, " + mark, CanonicalURL: "https://palmares.example/" + slug(i), AlternativesURL: "https://palmares.example/alternatives/" + slug(i),
			UpdatedAt: editionDate(n), Tier: 3,
		})
	}
	for i := range 10 {
		out.Write(&feed.Comparison{
			Slug: fmt.Sprintf("duel-%d", i), Title: "Duel, " + mark, ToolA: slug(i), ToolB: slug(i + 1), Winner: slug(i),
			WinnerNote: "Duel, " + mark, Published: true, UpdatedAt: editionDate(n), CanonicalURL: fmt.Sprintf("https://palmares.example/duel-%d", i),
		})
	}
	return path, out.Flush()
}

var (
	marks    = regexp.MustCompile(`édition ([0-9]+)\.`)
	dates    = regexp.MustCompile(`"(?:updated_at|updatedAt)": ?"([0-9-]{10})`)
	averages = regexp.MustCompile(`"(?:tools_avg_score|toolsAvgScore)": ?([0-9.]+)`)
)

// editionOf returns the edition of a response, or noEdition. It is an error if
// parts of the response, or the header X-Service-Updated-At, are from others.
func editionOf(header string, body []byte) (int, error) {
	var found []int
	if header != "" {
		found = append(found, editionOn(header))
	}
	for _, mark := range marks.FindAllSubmatch(body, -1) {
		n, _ := strconv.Atoi(string(mark[1]))
		found = append(found, n)
	}
	for _, date := range dates.FindAllSubmatch(body, -1) {
		found = append(found, editionOn(string(date[1])))
	}
	if len(found) == 0 {
		return noEdition, nil
	}
	for _, n := range found {
		if n != found[0] {
			return found[0], fmt.Errorf("a response mixes editions %d and %d", found[0], n)
		}
	}
	for _, average := range averages.FindAllSubmatch(body, -1) {
		if score, _ := strconv.ParseFloat(string(average[1]), 64); score != editionScore(found[0]) {
			return found[0], fmt.Errorf("a response of edition %d has an average of %v", found[0], score)
		}
	}
	return found[0], nil
}

// editionOn returns the edition of a date.
func editionOn(date string) int {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return noEdition
	}
	return int(day.Sub(firstDay) / (24 * time.Hour))
}
