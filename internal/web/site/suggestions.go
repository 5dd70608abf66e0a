package site

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"palmares/graph"
	catalog "palmares/internal/catalog/release"
	"palmares/internal/core/lang"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/text"
	"palmares/internal/web/page"
)

const (
	suggestionsPath = "/search/suggestions"

	maxSuggestions      = 5
	maxLevels           = 4 // above a path; no page is deeper
	maxCompletions      = 8
	maxCompletedText    = 100 // characters
	minTextWithTypos    = 4   // characters
	suggestionsLifetime = "public, max-age=60"
)

// suggest returns pages that the visitor may have meant: items of the catalog
// with a similar slug, or else a page above the path or with a similar name.
// route is nil for a path that does not exist.
func (s *Site) suggest(ctx context.Context, r *http.Request, route *route) []page.Suggestion {
	if route != nil {
		if list, ok := strings.CutSuffix(route.pattern, "/{slug}"); ok {
			return s.suggestItems(ctx, list, r.PathValue("slug"))
		}
		return nil
	}
	above := path.Clean(r.URL.Path)
	for range maxLevels {
		if above = path.Dir(above); above == "/" {
			break
		}
		switch pattern := s.patternOf(r, above); {
		case strings.HasSuffix(pattern, "/{slug}"):
			return s.suggestItems(ctx, path.Dir(above), path.Base(above))
		case pattern != "":
			return []page.Suggestion{{Path: above, Name: above}}
		}
	}
	return s.suggestPages(lang.Of(r.Context()), path.Base(r.URL.Path))
}

// suggestItems returns the pages of a list with slugs similar to a text.
func (s *Site) suggestItems(ctx context.Context, list, slug string) (found []page.Suggestion) {
	newest, err := s.Executor.Newest(ctx)
	if err != nil {
		return nil
	}
	done, err := s.Visitors.Start(ctx)
	if err != nil {
		return nil
	}
	defer done()
	l := lang.Of(ctx)
	switch list {
	case "/categories":
		slugs := map[string]string{} // by what visitors may enter
		for _, c := range newest.Categories {
			slugs[c.Slug], slugs[c.Label], slugs[c.Translations.En.Label] = c.Slug, c.Slug, c.Slug
		}
		delete(slugs, "")
		for _, similar := range text.Similar(slug, slices.Sorted(maps.Keys(slugs)), maxSuggestions) {
			one := suggestionOf(l, catalog.Named{Category: newest.Category(slugs[similar])})
			if !slices.Contains(found, one) {
				found = append(found, one)
			}
		}
	case "/comparatifs":
		for _, c := range newest.SimilarComparisons(slug, maxSuggestions) {
			found = append(found, suggestionOf(l, catalog.Named{Comparison: c}))
		}
	default:
		found = similarTools(l, newest, slug)
	}
	return found
}

// similarTools returns the pages of tools with a name similar to a text.
func similarTools(l lang.Language, in *catalog.Release, wanted string) (found []page.Suggestion) {
	for _, t := range in.SimilarTools(wanted, maxSuggestions) {
		found = append(found, suggestionOf(l, catalog.Named{Tool: t}))
	}
	return found
}

// suggestionOf returns the page of an item in a language.
func suggestionOf(l lang.Language, item catalog.Named) page.Suggestion {
	found, english := page.Suggestion{Lang: catalogLang(lang.English)}, ""
	if found.Name, english = item.Names(); l == lang.English && english != "" {
		found.Name, found.Lang = english, ""
	}
	switch {
	case item.Category != nil:
		found.Path = "/categories/" + item.Category.Slug
	case item.Comparison != nil:
		found.Path = "/comparatifs/" + item.Comparison.Slug
	case item.Tool.Active():
		found.Path = "/tools/" + item.Tool.Slug
	default:
		found.Path = "/cimetiere/" + item.Tool.Slug
	}
	return found
}

// lastPage returns the page of a removed tool as of the last release that had it,
// if that release can be read.
func (s *Site) lastPage(ctx context.Context, r *http.Request, route *route) (last page.Suggestion) {
	slug := strings.TrimSpace(r.PathValue("slug"))
	if route == nil || route.name != "tool" && route.name != "retired" {
		return last
	}
	done, err := s.Visitors.Start(ctx)
	if err != nil {
		return last
	}
	defer done()
	var result struct {
		ToolVersions struct {
			Versions []struct {
				LastRelease int // 0 for a tool that is still in the catalog
				version
			}
		}
	}
	err = s.execute(ctx, graph.AsOf{}, "lastVersion", map[string]any{"slug": slug}, &result)
	if err != nil || len(result.ToolVersions.Versions) == 0 {
		return last
	}
	newest := result.ToolVersions.Versions[0]
	if shown, err := s.Executor.Newest(ctx); err != nil || !isReadable(shown, newest.LastRelease) {
		return last
	}
	return page.Suggestion{Path: newest.pageAsOf(slug, newest.LastRelease), Name: lang.Of(r.Context()).Text("View it as of edition %d", newest.LastRelease)}
}

// suggestPages compares a name with the paths of pages.
func (s *Site) suggestPages(l lang.Language, name string) (found []page.Suggestion) {
	pages := map[string]page.Suggestion{}
	for _, path := range s.Suggested {
		pages[strings.Trim(path, "/")] = page.Suggestion{Path: path, Name: path}
	}
	for _, e := range page.Registry {
		one := page.Suggestion{Path: e.Path, Name: l.Text(e.Name)}
		pages[e.Path[1:]], pages[lang.English.Section(e.Path)[1:]] = one, one
		pages[strings.Join(text.Words(one.Name), "-")] = one // such as /fr/outils
	}
	pages["api"] = pages["docs"]
	for _, similar := range text.Similar(name, slices.Sorted(maps.Keys(pages)), maxSuggestions) {
		if one := pages[similar]; !slices.Contains(found, one) {
			found = append(found, one)
		}
	}
	return found
}

// serveSuggestions completes what a visitor types into a search field. It only
// reads names in memory, so it does not count against a quota.
func (s *Site) serveSuggestions(w http.ResponseWriter, r *http.Request) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	typed := query.Get("q")
	if err != nil || !params.IsText(typed) || utf8.RuneCountInString(typed) > maxCompletedText {
		return problem.New(problem.BadInput, "%s must be text of at most %d characters.", "q", maxCompletedText)
	}
	type suggestion struct {
		Name string `json:"name"`
		Path string `json:"path"`
		Note string `json:"note"`
	}
	l, list := lang.Parse(query.Get("lang")), []suggestion{} // not null
	newest, found, lifetime := s.complete(s.Visitors.Identify(r), typed)
	for _, item := range found {
		one := suggestionOf(l, item)
		list = append(list, suggestion{one.Name, page.LocalPath(l, one.Path), noteOf(l, newest, item)})
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

// complete returns the items to suggest, and for how long. Shared caches must not store
// an empty list that only a busy server, or a visitor without CPU time, gets.
func (s *Site) complete(ctx context.Context, typed string) (newest *catalog.Release, found []catalog.Named, lifetime string) {
	if strings.TrimSpace(typed) == "" {
		return nil, nil, suggestionsLifetime
	}
	newest, err := s.Executor.Newest(ctx)
	if err != nil {
		return nil, nil, "no-store"
	}
	found = newest.Complete(typed, maxCompletions)
	if len(found) > 0 || utf8.RuneCountInString(typed) < minTextWithTypos {
		return newest, found, suggestionsLifetime
	}
	done, err := s.Visitors.Start(ctx) // typos are compared with every name
	if err != nil {
		return nil, nil, "no-store"
	}
	defer done()
	for _, t := range newest.SimilarTools(typed, maxCompletions) {
		found = append(found, catalog.Named{Tool: t})
	}
	return newest, found, suggestionsLifetime
}

// noteOf says what an item is about.
func noteOf(l lang.Language, in *catalog.Release, item catalog.Named) string {
	switch {
	case item.Category != nil:
		return l.Text("Category")
	case item.Comparison != nil:
		return l.Text("Comparison")
	}
	category := ""
	if c := in.Category(item.Tool.Category); c != nil {
		category = suggestionOf(l, catalog.Named{Category: c}).Name
	}
	switch {
	case !item.Tool.Active():
		return category + " · " + l.Text("retired")
	case math.IsNaN(item.Tool.Score):
		return category
	}
	return category + " · " + formatScore(l, &item.Tool.Score)
}
