package site

import (
	"context"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"palmares/internal/core/text"
)

// suggestion is a page that may have been meant.
type suggestion struct {
	Path, Name string
	Catalog    bool // the name is the catalog's
}

const mostSuggestions = 5

// nearest are the pages that may have been meant: of a list in the catalog
// those with the most similar names, and else what lies above the address or
// is called like it.
func (s *Site) nearest(ctx context.Context, r *http.Request, shown *shown) []suggestion {
	if shown != nil {
		if list, hasSlug := strings.CutSuffix(shown.path, "/{slug}"); hasSlug {
			return s.nearestIn(ctx, list, r.PathValue("slug"))
		}
		return nil
	}
	for above := path.Dir(path.Clean(r.URL.Path)); above != "/"; above = path.Dir(above) {
		switch pattern := patternOf(s.mux, r, above); {
		case strings.HasSuffix(pattern, "/{slug}"):
			return s.nearestIn(ctx, path.Dir(above), path.Base(above))
		case pattern != "":
			return []suggestion{{Path: above, Name: above}}
		}
	}
	return s.nearestPage(path.Base(r.URL.Path))
}

// nearestIn looks through the names of a list.
func (s *Site) nearestIn(ctx context.Context, list, slug string) []suggestion {
	known := s.names.of(ctx, s.Answers.Newest())
	if known == nil {
		return nil // the page says what it can without
	}
	done, err := s.slots.take(ctx)
	if err != nil {
		return nil // others need the time more
	}
	defer done()
	if list == "/comparatifs" {
		return known.comparisons.nearest(slug)
	}
	return known.tools.nearest(slug)
}

// menuWords are what the menu calls pages whose addresses are called otherwise.
var menuWords = map[string]string{"comparisons": "/comparatifs", "graveyard": "/cimetiere", "api": "/docs"}

// nearestPage looks through the pages that have an address of their own.
func (s *Site) nearestPage(name string) (found []suggestion) {
	byName := map[string]string{}
	for _, page := range append([]string{"/tools", "/comparatifs", "/categories", "/cimetiere"}, s.Others...) {
		byName[strings.Trim(page, "/")] = page
	}
	for word, page := range menuWords {
		byName[word] = page
	}
	seen := map[string]bool{}
	for _, name := range text.Similar(name, slices.Sorted(maps.Keys(byName)), mostSuggestions) {
		if page := byName[name]; !seen[page] {
			seen[page] = true
			found = append(found, suggestion{Path: page, Name: page})
		}
	}
	return found
}
