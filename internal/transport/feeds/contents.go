package feeds

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	"palmares/ent"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/release"
	"palmares/internal/core/problem"
	"palmares/internal/core/text"
)

// contents has what entries show besides their events: names, and which pages exist.
type contents struct {
	db     *ent.Client
	shown  *release.Release
	item   string         // name of the tool or category that the feed is about
	former map[int]string // names of removed tools, by the number of the event
}

// load reads the names of removed tools. It returns a problem if no release has the item
// of the feed.
func (c *contents) load(ctx context.Context, f feed, events []*journal.Event) (err error) {
	c.former = map[int]string{}
	for _, event := range events {
		if event.AboutTool() && c.current(pathOf(event)) == "" {
			if c.former[event.Number], err = c.formerName(ctx, event.Slug, event.Release); err != nil {
				return err
			}
		}
	}
	return c.loadItem(ctx, f, events)
}

// current returns the name of what a page of the release is about, or "".
func (c *contents) current(page string) string {
	list, slug := path.Split(page)
	switch list {
	case "/tools/":
		if t := c.shown.Tool(slug); t != nil {
			return t.Name
		}
	case "/categories/":
		if category := c.shown.Category(slug); category != nil {
			return category.Label
		}
	case "/comparatifs/":
		for _, comparison := range c.shown.FindComparisons(slug) {
			return comparison.Title
		}
	}
	return ""
}

// formerName returns the name that a tool had in a release.
func (c *contents) formerName(ctx context.Context, slug string, release int) (string, error) {
	named := []string{journal.EventToolCreated, journal.EventToolUpdated, journal.EventToolRetired, journal.EventRetiredUpdated, journal.EventToolRemoved}
	last, err := journal.Read(ctx, c.db.JournalEntry, journal.Query{Types: named, Slug: slug, UpTo: release, NewestFirst: true, Limit: 1})
	if err != nil || len(last) == 0 {
		return slug, err
	}
	return nameIn(readState(last[0].Before), readState(last[0].After), slug), nil
}

func (c *contents) loadItem(ctx context.Context, f feed, events []*journal.Event) (err error) {
	if f.page == "" {
		return nil
	}
	slug := path.Base(f.page)
	if c.item = c.current(f.page); c.item != "" {
		return nil
	}
	near, missing, similar := "", "There is no category “%s”.", "There is no category “%s”. Did you mean “%s”?"
	if strings.HasPrefix(f.page, "/tools/") {
		if len(events) > 0 {
			c.item, err = c.formerName(ctx, slug, c.shown.Number())
			return err
		}
		missing, similar = "There is no tool “%s”.", "There is no tool “%s”. Did you mean “%s”?"
		near = c.shown.NearestTool(slug)
	} else {
		for _, event := range events {
			if event.Slug == slug && event.Type == journal.EventCategoryRemoved {
				c.item = nameIn(readState(event.Before), readState(event.After), slug)
				return nil
			}
		}
		var existing []string
		for _, category := range c.shown.Categories {
			existing = append(existing, category.Slug)
		}
		near = text.Nearest(slug, existing)
	}
	if near != "" {
		return problem.New(problem.NotFound, similar, slug, near)
	}
	return problem.New(problem.NotFound, missing, slug)
}

// name returns the name of a tool, for events that do not contain one.
func (c *contents) name(event *journal.Event) string {
	if name := c.current(pathOf(event)); event.AboutTool() && name != "" {
		return name
	}
	if name := c.former[event.Number]; name != "" {
		return name
	}
	return event.Slug
}

// pathOf returns the path of the page about an event. The pages of active and retired
// tools redirect to each other.
func pathOf(event *journal.Event) string {
	switch event.Type {
	case journal.EventCatalogPublished:
		return "/editions/" + strconv.Itoa(event.Release)
	case journal.EventCategoryCreated, journal.EventCategoryUpdated, journal.EventCategoryRemoved:
		return "/categories/" + event.Slug
	case journal.EventComparisonPublished, journal.EventComparisonUpdated, journal.EventComparisonRemoved:
		return "/comparatifs/" + event.Slug
	}
	return "/tools/" + event.Slug
}

// pageOf returns the page about an event: the current one or, if it no longer exists,
// the one as of the release, or before it if the release removed it.
func (c *contents) pageOf(event *journal.Event) string {
	number := event.Release
	if strings.HasSuffix(event.Type, ".removed") {
		number--
	}
	address := c.pageAt(pathOf(event), number)
	if retired := []string{journal.EventToolRetired, journal.EventRetiredUpdated}; slices.Contains(retired, event.Type) {
		address = strings.Replace(address, "/tools/", "/cimetiere/", 1)
	}
	return address
}

// itemPage returns the page of the item of a feed or, if it was removed, its changes.
func (c *contents) itemPage(f feed) string {
	if c.current(f.page) != "" {
		return f.page
	}
	if f.query.Slug != "" {
		return "/changes?tool=" + f.query.Slug
	}
	return "/changes?category=" + f.query.Categories[0]
}

// pageAt returns a page that exists: the current one, the one as of a release or, if
// that release can no longer be read, the list of changes.
func (c *contents) pageAt(address string, release int) string {
	switch {
	case strings.HasPrefix(address, "/editions/") || c.current(address) != "":
		return address
	case release < c.shown.HistoryFrom() || release < 1:
		return "/changes"
	}
	return address + "?as_of=" + strconv.Itoa(release)
}
