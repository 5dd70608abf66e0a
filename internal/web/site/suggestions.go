package site

import (
	"context"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"palmares/graph"
	catalog "palmares/internal/catalog/release"
	"palmares/internal/core/lang"
	"palmares/internal/core/text"
	"palmares/internal/web/page"
)

const (
	maxSuggestions = 5
	maxLevels      = 4 // above a path; no page is deeper
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

func (s *Site) suggestItems(ctx context.Context, list, slug string) []page.Suggestion {
	known := s.names(ctx)
	if known == nil {
		return nil
	}
	done, err := s.Visitors.Start(ctx)
	if err != nil {
		return nil
	}
	defer done()
	return known.similar(lang.Of(ctx), list, slug)
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

// pageNames are the pages of the catalog that may be suggested.
var pageNames = map[string]lang.Message{
	"/tools": "Tools", "/comparatifs": "Comparisons", "/compare": "Compare tools", "/categories": "Categories", "/cimetiere": "Graveyard",
	changesPath: "Changes", "/prices": "Prices", "/trends": "Trends",
}

// suggestPages also compares the names that pages have in the menu.
func (s *Site) suggestPages(l lang.Language, name string) (found []page.Suggestion) {
	paths := map[string]string{"comparisons": "/comparatifs", "graveyard": "/cimetiere", "api": "/docs"}
	for _, path := range slices.Concat(slices.Collect(maps.Keys(pageNames)), s.Suggested) {
		paths[strings.Trim(path, "/")] = path
	}
	for _, name := range text.Similar(name, slices.Sorted(maps.Keys(paths)), maxSuggestions) {
		suggestion := page.Suggestion{Path: paths[name], Name: paths[name]}
		if title, ok := pageNames[paths[name]]; ok {
			suggestion.Name = l.Text(title)
		}
		if !slices.Contains(found, suggestion) {
			found = append(found, suggestion)
		}
	}
	return found
}

// names finds pages of the catalog by name.
type names struct {
	release     *catalog.Release
	completions completions // of everything
}

// namedPage is the page of an item of the catalog.
type namedPage struct {
	page.Suggestion
	english  string            // the name in English, or "" if it has no translation
	category *catalog.Category // a tool's category, or nil
	score    float64           // an active tool's score; NaN if it has none
	kind     int               // position of its list among completions
}

// translated returns the suggestion in a language, if its name has a translation.
func (p namedPage) translated(l lang.Language) page.Suggestion {
	if l == lang.English && p.english != "" {
		return page.Suggestion{Path: p.Path, Name: p.english}
	}
	return p.Suggestion
}

// names returns the names of the newest release, or nil if it is not available.
func (s *Site) names(ctx context.Context) *names {
	newest, err := s.Executor.Newest(ctx)
	if err != nil {
		return nil
	}
	return catalog.Derived(newest, newNames)
}

func newNames(r *catalog.Release) *names {
	n := &names{release: r}
	var active, retired, categories, comparisons []namedPage
	for _, t := range r.Sorted(catalog.ByScore) {
		active = append(active, n.toolPage(t))
	}
	for _, t := range r.Sorted(catalog.ByRetirement) {
		retired = append(retired, n.toolPage(t))
	}
	for _, c := range r.Categories {
		categories = append(categories, newNamedPage("/categories/"+c.Slug, c.Label, c.Translations.En.Label))
	}
	for _, c := range r.Comparisons {
		comparisons = append(comparisons, newNamedPage("/comparatifs/"+c.Slug, c.Title, c.Translations.En.Title))
	}
	n.completions = newCompletions(active, categories, retired, comparisons)
	return n
}

func newNamedPage(path, name, english string) namedPage {
	return namedPage{Suggestion: page.Suggestion{Path: path, Name: name, Lang: catalogLang(lang.English)}, english: english}
}

// toolPage returns the page of an active or retired tool.
func (n *names) toolPage(t *catalog.Tool) namedPage {
	list := "/tools/"
	if !t.Active() {
		list = "/cimetiere/"
	}
	p := newNamedPage(list+t.Slug, t.Name, "")
	if p.category = n.release.Category(t.Category); t.Active() {
		p.score = t.Score
	}
	return p
}

// tooMany reports whether comparing a text with all names would take too long.
func (n *names) tooMany() bool { return len(n.release.Tools) > maxNamesWithTypos }

// similar returns the pages of a list with slugs similar to a text.
func (n *names) similar(l lang.Language, list, slug string) (found []page.Suggestion) {
	if n.tooMany() {
		return nil
	}
	if list != "/comparatifs" && list != "/categories" {
		return suggestionsOf(n.similarTools(slug, maxSuggestions))
	}
	var slugs []string
	pages := map[string]page.Suggestion{}
	for _, p := range n.completions.pages {
		if path.Dir(p.Path) == list {
			slugs = append(slugs, path.Base(p.Path))
			pages[path.Base(p.Path)] = p.translated(l)
		}
	}
	for _, similar := range text.Similar(slug, slugs, maxSuggestions) {
		found = append(found, pages[similar])
	}
	return found
}

// similarTools returns the pages of tools with slugs similar to a text.
func (n *names) similarTools(wanted string, limit int) (found []namedPage) {
	if n.tooMany() {
		return nil
	}
	for _, t := range n.release.SimilarTools(wanted, limit) {
		found = append(found, n.toolPage(t))
	}
	return found
}

func suggestionsOf(pages []namedPage) (found []page.Suggestion) {
	for _, p := range pages {
		found = append(found, p.Suggestion)
	}
	return found
}
