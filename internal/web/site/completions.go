package site

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"palmares/internal/core/lang"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/text"
	"palmares/internal/web/page"
)

const (
	suggestionsPath = "/search/suggestions"

	maxCompletions      = 8
	maxCompletedText    = 100    // characters
	maxCompletionScan   = 1_000  // entries with the same start
	maxNamesWithTypos   = 20_000 // names that are compared letter by letter
	minTextWithTypos    = 4      // characters
	suggestionsLifetime = "public, max-age=60"
)

// completions finds names by the start of any of their words. Entries are sorted
// by their key: the rest of a name from a word on.
type completions struct {
	pages   []namedPage
	entries []completion
}

type completion struct {
	key   string
	at    int32 // position of the page
	start bool  // the key is the whole name
}

// newCompletions indexes lists of pages, the most important kind first.
func newCompletions(lists ...[]namedPage) (c completions) {
	for kind, list := range lists {
		for _, p := range list {
			c.index(p.Name)
			if p.english != "" && p.english != p.Name {
				c.index(p.english)
			}
			p.kind = kind
			c.pages = append(c.pages, p)
		}
	}
	slices.SortFunc(c.entries, func(a, b completion) int { return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.at, b.at)) })
	return c
}

// index adds a name of the next page.
func (c *completions) index(name string) {
	name = strings.Join(text.Words(name), " ")
	for from := 0; ; {
		c.entries = append(c.entries, completion{name[from:], int32(len(c.pages)), from == 0}) //nolint:gosec // the catalog fits into memory
		space := strings.IndexByte(name[from:], ' ')
		if space < 0 {
			return
		}
		from += space + 1
	}
}

// complete returns the pages whose names contain a text that starts at a word:
// names that start with it first, then by kind and score.
func (c completions) complete(typed string) (found []namedPage) {
	prefix := strings.Join(text.Words(typed), " ")
	if prefix == "" {
		return nil
	}
	first, _ := slices.BinarySearchFunc(c.entries, prefix, func(e completion, prefix string) int { return strings.Compare(e.key, prefix) })
	matches := c.entries[first:min(len(c.entries), first+maxCompletionScan)]
	if end := slices.IndexFunc(matches, func(e completion) bool { return !strings.HasPrefix(e.key, prefix) }); end >= 0 {
		matches = matches[:end]
	}
	matches = slices.Clone(matches)
	slices.SortStableFunc(matches, func(a, b completion) int {
		return cmp.Or(boolOrder(a.start, b.start), cmp.Compare(c.pages[a.at].kind, c.pages[b.at].kind), cmp.Compare(c.pages[b.at].score, c.pages[a.at].score))
	})
	for _, m := range matches {
		if len(found) == maxCompletions {
			break
		}
		if p := c.pages[m.at]; !slices.ContainsFunc(found, func(known namedPage) bool { return known.Path == p.Path }) {
			found = append(found, p)
		}
	}
	return found
}

// suggestion is an element of the suggestions response.
type suggestion struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Note string `json:"note"`
}

// serveSuggestions completes what a visitor types into a search field. It only
// reads names in memory, so it does not count against a quota.
func (s *Site) serveSuggestions(w http.ResponseWriter, r *http.Request) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	typed := query.Get("q")
	if err != nil || !params.IsText(typed) || utf8.RuneCountInString(typed) > maxCompletedText {
		return problem.New(problem.BadInput, "%s must be text of at most %d characters.", "q", maxCompletedText)
	}
	l := lang.Parse(query.Get("lang"))
	list := []suggestion{} // not null
	found, lifetime := s.complete(s.Visitors.Identify(r), typed)
	for _, p := range found {
		list = append(list, suggestion{p.translated(l).Name, page.LocalPath(l, p.Path), p.note(l)})
	}
	body, err := json.Marshal(list)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", lifetime)
	_, _ = w.Write(body)
	return nil
}

// complete returns the pages to suggest, and for how long. Shared caches must not store
// an empty list that only a busy server, or a visitor without CPU time, gets.
func (s *Site) complete(ctx context.Context, typed string) (found []namedPage, lifetime string) {
	if strings.TrimSpace(typed) == "" {
		return nil, suggestionsLifetime
	}
	known := s.names(ctx)
	if known == nil {
		return nil, "no-store"
	}
	found = known.completions.complete(typed)
	if len(found) > 0 || utf8.RuneCountInString(typed) < minTextWithTypos {
		return found, suggestionsLifetime
	}
	done, err := s.Visitors.Start(ctx) // typos are compared with every name
	if err != nil {
		return nil, "no-store"
	}
	defer done()
	return known.similarTools(typed, maxCompletions), suggestionsLifetime
}

// similarTools returns the pages of tools with a name similar to the search text.
func (s *Site) similarTools(ctx context.Context, typed string) []page.Suggestion {
	known := s.names(ctx)
	if known == nil || typed == "" {
		return nil
	}
	return suggestionsOf(known.similarTools(typed, maxSuggestions))
}

// note says what a page is about.
func (p namedPage) note(l lang.Language) string {
	var category string
	if p.category != nil {
		category = p.category.Label
		if english := p.category.Translations.En.Label; l == lang.English && english != "" {
			category = english
		}
	}
	switch {
	case strings.HasPrefix(p.Path, "/tools/") && !math.IsNaN(p.score):
		return category + " · " + formatScore(l, &p.score)
	case strings.HasPrefix(p.Path, "/tools/"):
		return category
	case strings.HasPrefix(p.Path, "/cimetiere/"):
		return category + " · " + l.Text("retired")
	case strings.HasPrefix(p.Path, "/categories/"):
		return l.Text("Category")
	}
	return l.Text("Comparison")
}
