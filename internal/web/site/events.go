package site

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"palmares/graph"
	catalog "palmares/internal/catalog/release"
	"palmares/internal/web/page"
)

// eventCatalog has what a list of events shows besides the events: the dates of
// releases, the names of tools that are no longer active, and which pages exist.
type eventCatalog struct {
	shown    *catalog.Release
	versions map[string][]version // versions of tools that the release does not have, newest first
}

// load reads the versions of the tools that events without a name are about, if the
// release does not have them.
func (c *eventCatalog) load(ctx context.Context, s *Site, r *request, events []event) (err error) {
	if c.shown, err = s.Executor.Release(ctx, r.asOf); err != nil {
		return err
	}
	slugs := map[string]bool{}
	if slug := r.Param("tool"); slug != "" {
		slugs[slug] = true
	}
	for i := range events {
		if e := &events[i]; e.subject() == "tool" && e.name() == "" {
			slugs[e.Slug] = true
		}
	}
	c.versions = map[string][]version{}
	for slug := range slugs {
		if c.shown.Tool(slug) != nil {
			continue
		}
		var result struct{ ToolVersions struct{ Versions []version } }
		if err := s.execute(ctx, r.asOf, "toolNames", map[string]any{"slug": slug}, &result); err != nil {
			return err
		}
		c.versions[slug] = result.ToolVersions.Versions
	}
	return nil
}

// name returns the name of what an event is about.
func (c *eventCatalog) name(e *event) string {
	return cmp.Or(e.name(), c.toolName(e.Slug, e.Release))
}

// toolName returns the name of a tool. One that has been removed has the name of a
// release, or its last name if the release is 0.
func (c *eventCatalog) toolName(slug string, release int) string {
	if t := c.shown.Tool(slug); t != nil {
		return t.Name
	}
	for _, v := range c.versions[slug] {
		if v.After != nil && (release == 0 || v.FirstRelease <= release) {
			return textIn(v.After, "name")
		}
	}
	return slug
}

// release returns the release of an event.
func (c *eventCatalog) release(e *event) release {
	found := release{Number: e.Release, Date: dayOf(e.PublishedAt), PublishedAt: e.PublishedAt}
	for _, info := range c.shown.All {
		if info.ID == e.Release {
			found.Date = info.FeedDate
		}
	}
	return found
}

// link returns the URL of the page of what changed: the current one or, if it no
// longer exists, that of the release. It is "" if the release cannot be read.
func (c *eventCatalog) link(r *request, e *event) string {
	if pageExists(c.shown, e.path()) {
		return r.Link(e.path())
	}
	number := e.Release
	if strings.HasSuffix(e.Type, "_removed") {
		number--
	}
	for _, readable := range c.shown.Readable() {
		if readable.ID == number {
			return fmt.Sprintf("%s?%s=%d", e.path(), graph.AsOfName, number)
		}
	}
	return ""
}

// pageExists reports whether a release has the page of an item at a path. Pages of
// active and retired tools redirect to each other. Other pages always exist.
func pageExists(shown *catalog.Release, address string) bool {
	list, slug := path.Split(address)
	switch list {
	case "/tools/", "/cimetiere/":
		return shown.Tool(slug) != nil
	case "/categories/":
		return shown.Category(slug) != nil
	case "/comparatifs/":
		return slices.ContainsFunc(shown.Comparisons, func(c *catalog.Comparison) bool { return c.Slug == slug })
	}
	if compared, found := strings.CutPrefix(address, "/compare/"); found {
		return !slices.ContainsFunc(strings.Split(compared, "/"), func(slug string) bool { return shown.Tool(slug) == nil })
	}
	return true
}

// toolFeed and categoryFeed return the Atom feeds of the changes to an item.
func toolFeed(r *request, slug, name string) page.Feed {
	return page.Feed{Title: r.lang.Text("Changes to %s", name), Path: "/tools/" + slug + "/changes.atom"}
}

func categoryFeed(r *request, slug, label string) page.Feed {
	return page.Feed{Title: r.lang.Text("Changes to %s", label), Path: "/categories/" + slug + "/changes.atom"}
}

func (v *toolView) feeds(r *request) []page.Feed {
	return []page.Feed{toolFeed(r, v.Tool.Slug, v.Tool.Name)}
}

func (v *retiredToolView) feeds(r *request) []page.Feed {
	return []page.Feed{toolFeed(r, v.RetiredTool.Slug, v.RetiredTool.Name)}
}

func (v *categoryView) feeds(r *request) []page.Feed {
	return []page.Feed{categoryFeed(r, v.Category.Slug, v.Category.Label)}
}

// PublishedLater reports whether the release was published on another day than its
// date, which is that of the feed.
func (r release) PublishedLater() bool { return dayOf(r.PublishedAt) != r.Date }

// PublishedTime returns the time of publication.
func (r release) PublishedTime() time.Time {
	at, _ := time.Parse(time.RFC3339, r.PublishedAt) // the API formats it
	return at
}
