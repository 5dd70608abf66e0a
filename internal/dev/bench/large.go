package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"palmares/internal/dev/testkit"
)

// The part about size: what a cold page takes in a catalog of 100,000 tools,
// against one of 5,000.

// cold is a question in several forms, so that each is asked for the first
// time; {limit} stands for its number.
type cold struct {
	what, path, query string
}

var coldQuestions = []cold{
	{"first page", "/api/v1/tools?limit={limit}", ""},
	{"middle page", "/api/v1/tools?limit={limit}&page={middle}", ""},
	{"middle page by name", "/api/v1/tools?limit={limit}&sort=name_asc&page={middle}", ""},
	{"last page", "/api/v1/tools?limit={limit}&page={last}", ""},
	{"first page by name", "/api/v1/tools?limit={limit}&sort=name_desc", ""},
	{"last page by name", "/api/v1/tools?limit={limit}&sort=name_asc&page={last}", ""},
	{"category", "/api/v1/tools?limit={limit}&category=code", ""},
	{"score_min", "/api/v1/tools?limit={limit}&score_min=8", ""},
	{"obsolescence_max", "/api/v1/tools?limit={limit}&obsolescence_max=1", ""},
	{"every filter", "/api/v1/tools?limit={limit}&category=code&score_min=5&obsolescence_max=5&sort=name_asc", ""},
	{"prices, last page", "/api/v1/pricing?limit={limit}&page={last}", ""},
	{"comparisons of a category", "/api/v1/comparatifs?limit={limit}&category=code", ""},
	{"retired for a reason", "/api/v1/cimetiere?limit={limit}&reason=pivot", ""},
	{"priceMax", "", "{tools(limit: {limit}, filter: {priceMax: 10}) {items {slug} meta {total}}}"},
	{"pricings and icps", "", "{tools(limit: {limit}, filter: {pricings: [gratuit], icps: [mixte]}) {items {slug} meta {total}}}"},
	{"verifiabilityMin", "", "{tools(limit: {limit}, filter: {verifiabilityMin: 9}) {items {slug} meta {total}}}"},
	{"updatedSince", "", `{tools(limit: {limit}, filter: {updatedSince: "2026-06-01"}) {items {slug} meta {total}}}`},
	{"search", "", `{tools(limit: {limit}, filter: {search: "agent {limit}"}) {items {slug} meta {total}}}`},
	{"search for what many have", "", `{tools(limit: {limit}, filter: {search: "e"}) {items {slug} meta {total}}}`},
	{"search for nothing", "", `{tools(limit: {limit}, filter: {search: "zzz {limit}"}) {items {slug} meta {total}}}`},
}

// size is one row of its table.
type size struct {
	what, database string
	small, large   time.Duration
}

func (b *bench) large(ctx context.Context) error {
	for _, database := range []string{"SQLite", "PostgreSQL"} {
		rows := map[string]*size{}
		for _, tools := range []int{5_000, 100_000} {
			fmt.Fprintf(os.Stderr, "%s, cold pages of %d tools\n", database, tools)
			env := []string{fmt.Sprintf("PALMARES_DATA_DIR=%s/size-%d", b.dir, tools)}
			if database == "PostgreSQL" {
				address, drop, err := testkit.Scratch(ctx)
				if err != nil {
					return err
				}
				defer func() { _ = drop() }()
				env = []string{"DATABASE_URL=" + address}
			}
			if err := b.coldPages(database, env, tools, rows); err != nil {
				return err
			}
		}
		for _, q := range coldQuestions {
			b.sizes = append(b.sizes, *rows[q.what])
		}
	}
	return nil
}

func (b *bench) coldPages(database string, env []string, tools int, rows map[string]*size) error {
	if _, err := b.process(env, "import", b.feed(tools)); err != nil {
		return err
	}
	key, err := b.key(env)
	if err != nil {
		return err
	}
	server, err := b.serve(env)
	if err != nil {
		return err
	}
	defer server.stop()
	for _, q := range coldQuestions {
		took, err := q.measure(server.address, key, tools)
		if err != nil {
			return fmt.Errorf("%s: %w", q.what, err)
		}
		if rows[q.what] == nil {
			rows[q.what] = &size{what: q.what, database: database, small: took}
		}
		rows[q.what].large = took
	}
	return nil
}

// measure takes the median of nine.
func (q cold) measure(address, key string, tools int) (time.Duration, error) {
	var all []time.Duration
	for limit := 42; limit <= 50; limit++ {
		fill := strings.NewReplacer("{limit}", strconv.Itoa(limit), "{last}", strconv.Itoa((tools+limit-1)/limit), "{middle}", strconv.Itoa(tools/limit/2))
		r, err := http.NewRequest(http.MethodGet, "http://"+address+fill.Replace(q.path), nil)
		if q.query != "" {
			body, _ := json.Marshal(map[string]string{"query": fill.Replace(q.query)})
			r, err = http.NewRequest(http.MethodPost, "http://"+address+"/graphql", strings.NewReader(string(body)))
		}
		if err != nil {
			return 0, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+key)
		start := time.Now()
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || strings.Contains(string(body), `"errors"`) {
			return 0, fmt.Errorf("%d %v %.200s", response.StatusCode, err, body)
		}
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

func (b *bench) printSizes(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| cold page, about 50 items\t| database\t| of 5,000 tools\t| of 100,000\t| times\t|")
	fmt.Fprintln(table, "|---\t|---\t|---\t|---\t|---\t|")
	for _, s := range b.sizes {
		fmt.Fprintf(table, "| %s\t| %s\t| %s\t| %s\t| %.1f\t|\n", s.what, s.database,
			s.small.Round(10*time.Microsecond), s.large.Round(10*time.Microsecond), float64(s.large)/float64(s.small))
	}
	return table.Flush()
}
