package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/record"
	"palmares/internal/dev/load"
)

const (
	defaultRate        = 150 // requests per second, however slow responses are
	clientTimeout      = 12 * time.Second
	requestsPerAddress = 50 // of 100 per day
)

// query is a kind of request. Cached ones must always succeed; others may fail
// with 503 while the database is unavailable.
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
	{name: "tools", cached: true, path: "/api/v1/tools?limit=30"},
	{name: "prices, with a key", cached: true, keyed: true, path: "/api/v1/pricing?limit=30"},
	{name: "GraphQL", cached: true, path: "/graphql", body: `{"query":"` + graphql + `"}`},
	{name: "tools, uncached", path: "/api/v1/tools?score_min=0.{number}"},
	{name: "statistics", cached: true, path: "/api/v1/stats"},
	{name: "categories", cached: true, path: "/api/v1/categories"},
	{name: "prices, with a key", cached: true, keyed: true, path: "/api/v1/pricing?limit=30"},
	{name: "comparisons", cached: true, path: "/api/v1/comparatifs"},
	{name: "GraphQL", cached: true, path: "/graphql", body: `{"query":"` + graphql + `"}`},
	{name: "GraphQL, uncached", path: "/graphql", body: `{"query":"query Q{number} ` + graphql + `"}`},
}

// sample is the result of a request.
type sample struct {
	query   *query
	at      time.Time     // when it was due
	late    time.Duration // until it was sent, which is due to this machine
	took    time.Duration
	status  int // 0 without a response
	failure string
	tries   int    // servers that nginx tried
	server  string // address of the one that responded
	mixed   bool   // the response is from several releases
	older   bool   // older than a release that the same server has served before
}

// refused reports whether an uncached read failed with 503, which is allowed.
func (s *sample) refused() bool { return s.status == http.StatusServiceUnavailable && !s.query.cached }

var requestNumber atomic.Int64

// startLoad sends requests at a steady rate. End stops it, and returns the
// results after the last response.
func (s *system) startLoad() (end func() []*sample) {
	ctx, cancel := context.WithCancel(s.t.Context())
	client := &http.Client{
		Timeout:   clientTimeout,
		Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true, IdleConnTimeout: time.Minute},
	}
	var running sync.WaitGroup
	var mu sync.Mutex
	var samples []*sample
	running.Go(func() {
		start := time.Now()
		for i := 0; ; i++ {
			due := start.Add(time.Duration(i) * time.Second / time.Duration(cmp.Or(s.rate, defaultRate)))
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Until(due)):
			}
			n := requestNumber.Add(1)
			running.Go(func() {
				result := s.send(client, n, due)
				mu.Lock()
				defer mu.Unlock()
				samples = append(samples, result)
			})
		}
	})
	return func() []*sample {
		cancel()
		running.Wait()
		client.CloseIdleConnections()
		return samples
	}
}

func (s *system) send(client *http.Client, n int64, due time.Time) *sample {
	q := &queries[n%int64(len(queries))]
	result := &sample{query: q, at: due, late: time.Since(due), tries: 1}
	before := s.newestShown()
	numbered := func(text string) string { return strings.ReplaceAll(text, "{number}", fmt.Sprintf("%07d", n)) }
	name, value := "X-Forwarded-For", clientAddress(n/requestsPerAddress)
	if q.keyed {
		name, value = "Authorization", "Bearer "+s.key
	}
	response, body, err := load.Do(context.Background(), client, s.base+numbered(q.path), numbered(q.body), name, value)
	result.took = time.Since(due)
	if err != nil {
		result.failure = err.Error()
		return result
	}
	result.status = response.StatusCode
	tried := strings.Split(response.Header.Get(servedBy), ", ")
	result.tries, result.server = len(tried), tried[len(tried)-1]
	if result.status != http.StatusOK {
		result.failure = fmt.Sprintf("%d %.80s", result.status, body)
		return result
	}
	edition, err := editionOf(response.Header.Get("X-Service-Updated-At"), body)
	if err != nil {
		result.mixed, result.failure = true, err.Error()
	}
	if edition == noEdition {
		result.failure = fmt.Sprintf("%.80s", body)
		if bytes.Contains(body, []byte(`"UNAVAILABLE"`)) || bytes.Contains(body, []byte(`"TIMEOUT"`)) {
			result.status = http.StatusServiceUnavailable // as GraphQL reports it
		}
		return result
	}
	if edition < before[result.server] {
		result.older, result.failure = true, "an older release than before"
	}
	s.addShown(result.server, edition)
	return result
}

func clientAddress(n int64) string { return fmt.Sprintf("100.%d.%d.%d", 64+n>>16&63, n>>8&255, n&255) }

// An edition is a catalog with its number in every line, so that a response
// from two releases is detected. The exception are tools with review texts, which
// come last in every list, for clients that sync: about a fourth of the texts
// change, and some are absent.

var firstDay = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func editionDate(n int) string { return firstDay.AddDate(0, 0, n).Format(time.DateOnly) }

// writeEdition writes the feed of an edition. Other tools have no score, and change
// their dates only.
func writeEdition(w io.Writer, n, others int) error {
	mark, score := fmt.Sprintf("édition %d.", n), float64(10+n)/10 // which is then the average
	out := feed.NewWriter(w, editionDate(n))
	out.Write(&record.Category{Slug: "code", Label: "Code, " + mark})
	slug := func(i int) string { return fmt.Sprintf("outil-%d", i) }
	tool := func(slug, name, price, updated string) *record.Tool {
		return &record.Tool{
			Slug: slug, Name: name, Domain: slug + ".example", Category: "code", ICP: "mixte", Pricing: "payant", Price: price,
			Tagline: "Outil, " + mark, CanonicalURL: "https://palmares.example/" + slug, AlternativesURL: "https://palmares.example/alternatives/" + slug,
			UpdatedAt: updated, Tier: 3,
		}
	}
	for i := range 30 {
		scored := tool(slug(i), fmt.Sprintf("Outil %d", i), fmt.Sprintf("%d €/mois", 10+n), editionDate(n))
		scored.Score = &score
		out.Write(scored)
	}
	for i := range others {
		out.Write(tool(fmt.Sprintf("z-%d", i), fmt.Sprintf("Z %d", i), "5 €/mois", editionDate(n)))
	}
	out.Write(&record.Category{Slug: "texte", Label: "Textes"})
	for i := range 40 {
		if (n/3+i*7)%11 == 0 {
			continue
		}
		reviewed := tool(fmt.Sprintf("texte-%d", i), fmt.Sprintf("Texte %d", i), "5 €/mois", "2020-01-01")
		reviewed.Category, reviewed.Tagline = "texte", "Outil avec un texte"
		reviewed.Sections = []record.Section{{Section: "verdict", Text: fmt.Sprintf("Texte numéro %d.", n-(n+i*i)%4)}}
		out.Write(reviewed)
	}
	for i := range 10 {
		out.Write(&record.Comparison{
			Slug: fmt.Sprintf("duel-%d", i), Title: "Duel, " + mark, ToolA: slug(i), ToolB: slug(i + 1), Winner: slug(i),
			WinnerNote: "Duel, " + mark, Published: true, UpdatedAt: editionDate(n), CanonicalURL: fmt.Sprintf("https://palmares.example/duel-%d", i),
		})
	}
	return out.Flush()
}

var editionMark = regexp.MustCompile(`édition ([0-9]+)\.|"(?:updated_at|updatedAt)": ?"([0-9-]{10})|"(?:tools_avg_score|toolsAvgScore)": ?([0-9.]+)`)

// editionOf returns the edition of a response, or noEdition. It is an error if
// parts of the response, or the header X-Service-Updated-At, are from others.
func editionOf(header string, body []byte) (int, error) {
	var found []int
	if header != "" {
		found = append(found, editionOn(header))
	}
	for _, mark := range editionMark.FindAllStringSubmatch(string(body), -1) {
		n, _ := strconv.Atoi(mark[1])
		switch {
		case mark[2] != "":
			n = editionOn(mark[2])
		case mark[3] != "":
			score, _ := strconv.ParseFloat(mark[3], 64)
			n = int(math.Round(score*10)) - 10
		}
		if found = append(found, n); n != found[0] {
			return found[0], fmt.Errorf("a response mixes editions %d and %d: %s", found[0], n, mark[0])
		}
	}
	return append(found, noEdition)[0], nil
}

// editionOn returns the edition of a date.
func editionOn(date string) int {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return noEdition
	}
	return int(day.Sub(firstDay) / (24 * time.Hour))
}
