package site

import (
	"context"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"palmares/graph"
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
	if route != nil && route.name == "compare" {
		return s.suggestCompared(ctx, r, route)
	}
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
	names := s.names.get(ctx, s.Cache.Newest())
	if names == nil {
		return nil
	}
	release, err := s.limiter.acquire(ctx)
	if err != nil {
		return nil
	}
	defer release()
	switch list {
	case "/comparatifs":
		return names.comparisons.similar(slug)
	case "/categories":
		return names.categories.similar(slug)
	}
	return names.tools.similar(slug)
}

// suggestCompared returns comparisons with a known tool in place of the one that
// is unknown.
func (s *Site) suggestCompared(ctx context.Context, r *http.Request, route *route) (found []page.Suggestion) {
	names := s.names.get(ctx, s.Cache.Newest())
	if names == nil {
		return nil
	}
	var slugs []string
	for _, name := range route.pathParams() {
		slugs = append(slugs, strings.TrimSuffix(strings.TrimSpace(r.PathValue(name)), page.MarkdownSuffix))
	}
	for i, slug := range slugs {
		similar := s.suggestItems(ctx, "/tools", slug)
		if slices.ContainsFunc(similar, func(known page.Suggestion) bool { return path.Base(known.Path) == slug }) {
			continue
		}
		for _, known := range similar {
			corrected := slices.Clone(slugs)
			corrected[i] = path.Base(known.Path)
			found = append(found, page.Suggestion{Path: comparePath(corrected...), Name: known.Name, Lang: known.Lang})
		}
		break
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
	release, err := s.limiter.acquire(ctx)
	if err != nil {
		return last
	}
	defer release()
	var result struct {
		knownReleases
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
	if newest.LastRelease == 0 || !result.find(newest.LastRelease).Readable {
		return last
	}
	return page.Suggestion{Path: newest.pageAsOf(slug, newest.LastRelease), Name: lang.Of(r.Context()).Text("View it as of release %d", newest.LastRelease)}
}

// pageNames are the pages of the catalog that may be suggested.
var pageNames = map[string]lang.Message{
	"/tools": "Tools", "/comparatifs": "Comparisons", "/compare": "Compare tools", "/categories": "Categories", "/cimetiere": "Graveyard", releasesPath: "Releases",
}

// suggestPages also compares the names that pages have in the menu.
func (s *Site) suggestPages(l lang.Language, name string) (found []page.Suggestion) {
	paths := map[string]string{"comparisons": "/comparatifs", "graveyard": "/cimetiere", "api": "/docs"}
	for _, path := range slices.Concat(slices.Collect(maps.Keys(pageNames)), s.OtherPages) {
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

// nameCache holds the names of everything in the catalog. They are read on first
// use and again after each release.
type nameCache struct {
	read    func(ctx context.Context, operation, list string) ([]namedPage, error)
	reads   singleflight.Group
	current atomic.Pointer[catalogNames]
}

type catalogNames struct {
	release     int
	tools       nameIndex // active and retired
	comparisons nameIndex
	categories  nameIndex
	completions completions // of all
}

// namedPage is the page of an item of the catalog.
type namedPage struct {
	page.Suggestion
	category string   // label, or ""
	score    *float64 // nil if the item has none
}

type nameIndex struct {
	pages []namedPage
	slugs *text.Index
}

const (
	maxNames        = 200_000 // per list; further names are not suggested
	readNamesWithin = 30 * time.Second
	waitForNames    = time.Second
)

// get returns the names of a release. While they are being read, it returns those
// of the previous release, or nil if there is none and reading takes too long.
func (n *nameCache) get(ctx context.Context, release int) *catalogNames {
	current := n.current.Load()
	if current != nil && current.release == release {
		return current
	}
	done := n.reads.DoChan("", func() (any, error) { return nil, n.refresh(release) })
	if current != nil {
		return current
	}
	select {
	case <-done:
	case <-time.After(waitForNames):
	case <-ctx.Done():
	}
	return n.current.Load()
}

// refresh has its own context, because several requests wait for it.
func (n *nameCache) refresh(release int) error {
	ctx, cancel := context.WithTimeout(context.Background(), readNamesWithin)
	defer cancel()
	tools, err := n.read(ctx, "toolNames", "/tools/")
	if err != nil {
		return err
	}
	retired, err := n.read(ctx, "retiredNames", "/cimetiere/")
	if err != nil {
		return err
	}
	comparisons, err := n.read(ctx, "comparisonNames", "/comparatifs/")
	if err != nil {
		return err
	}
	categories, err := n.read(ctx, "categoryNames", "/categories/")
	if err != nil {
		return err
	}
	n.current.Store(&catalogNames{
		release, newNameIndex(slices.Concat(tools, retired)), newNameIndex(comparisons), newNameIndex(categories),
		newCompletions(tools, categories, retired, comparisons),
	})
	return nil
}

func newNameIndex(pages []namedPage) nameIndex {
	slugs := make([]string, len(pages))
	for i, page := range pages {
		slugs[i] = path.Base(page.Path)
	}
	return nameIndex{pages, text.NewIndex(slugs)}
}

func (x nameIndex) similar(slug string) (found []page.Suggestion) {
	for _, i := range x.slugs.Similar(slug, maxSuggestions) {
		found = append(found, x.pages[i].Suggestion)
	}
	return found
}

// readNames reads all pages of a list.
func (s *Site) readNames(ctx context.Context, operation, list string) (all []namedPage, err error) {
	labels := map[string]string{} // each in memory once, for up to maxNames tools
	for number, pages := 1, 1; number <= pages && len(all) < maxNames; number++ {
		type item struct {
			Slug, Name string
			Score      *float64
			Category   struct{ Label string }
		}
		var result struct {
			Names struct {
				Items []item
				Meta  struct{ Pages int }
			}
			Categories []item
		}
		if err := s.execute(ctx, graph.AsOf{}, operation, map[string]any{"page": number}, &result); err != nil {
			return nil, err
		}
		for _, item := range append(result.Names.Items, result.Categories...) {
			label := item.Category.Label
			if _, known := labels[label]; !known {
				labels[label] = label
			}
			all = append(all, namedPage{page.Suggestion{Path: list + item.Slug, Name: item.Name, Lang: catalogLang(lang.English)}, labels[label], item.Score})
		}
		pages = result.Names.Meta.Pages
	}
	return all, nil
}
