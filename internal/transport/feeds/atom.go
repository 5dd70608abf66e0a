// Package feeds serves the journal's events as Atom feeds.
package feeds

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"palmares/ent"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/release"
	"palmares/internal/core/atomxml"
	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

// Config configures a Handler.
type Config struct {
	Store       *store.Store
	Cache       *cache.Cache
	PublicURL   string
	ServiceName string
	Credit      string // the credit line that reuse of the data requires
	Log         *slog.Logger

	// Release returns the release with a number; 0 for the newest.
	Release func(ctx context.Context, number int) (*release.Release, error)
	// Visitors have a budget, which pays for feeds that are not cached. It may be nil.
	Visitors Visitors
}

// Visitors identifies the visitor of a request, and starts what the visitor's budget pays
// for.
type Visitors interface {
	Identify(r *http.Request) context.Context
	Start(ctx context.Context) (done func(), err error)
}

// Path is the prefix of the feeds about the whole catalog.
const Path = "/feeds/"

// ToolPath and CategoryPath are the patterns of the feeds about one item. They exist
// in each language, like the pages about these items.
const (
	ItemSuffix   = "/changes.atom"
	ToolPath     = "/tools/{slug}" + ItemSuffix
	CategoryPath = "/categories/{slug}" + ItemSuffix
)

// feed is a list of the newest events of some types.
type feed struct {
	path  string // without the language
	title lang.Message
	page  string // the page that the feed belongs to
	lang  lang.Language
	query journal.Query
	until int // the newest release of an archive; 0 for the feed itself
}

// document returns the path of the feed or, if it is not 0, of its archive until a release.
func (f feed) document(until int) string {
	switch {
	case until == 0:
		return f.path
	case strings.Contains(f.path, "?"):
		return f.path + "&until=" + strconv.Itoa(until)
	}
	return f.path + "?until=" + strconv.Itoa(until)
}

var feeds = []feed{
	{path: Path + "changes.atom", title: "What changed", query: journal.Query{Types: without(journal.Events, journal.EventCatalogPublished)}},
	{path: Path + "prices.atom", title: journal.Titles[journal.EventPriceChanged], query: journal.Query{Types: []string{journal.EventPriceChanged}}},
	{path: Path + "cimetiere.atom", title: journal.Titles[journal.EventToolRetired], query: journal.Query{Types: []string{journal.EventToolRetired}}},
}

// without omits some events, and earlier price changes, which are old news.
func without(events []string, others ...string) []string {
	return slices.DeleteFunc(slices.Clone(events), func(event string) bool {
		return event == journal.EventPriceBackfilled || slices.Contains(others, event)
	})
}

const (
	maxEntries  = 100
	readTimeout = 5 * time.Second
)

// Handler serves the feeds below Path, and those at ToolPath and CategoryPath.
type Handler struct{ config Config }

// New returns a handler for every feed.
func New(cfg Config) *Handler { return &Handler{cfg} }

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.serve(w, r); err != nil && r.Context().Err() == nil {
		problem.Write(w, err)
	}
}

// find returns the feed that a request is for.
func find(r *http.Request) (f feed, err error) {
	until := r.URL.Query().Get("until")
	if f, err = findFeed(r); err == nil && until != "" {
		if f.until, err = strconv.Atoi(until); err != nil || f.until < 1 {
			err = problem.New(problem.BadInput, "until must be the number of an edition (got %q).", params.Truncate(until))
		}
	}
	return f, err
}

func findFeed(r *http.Request) (feed, error) {
	if slug := r.PathValue("slug"); slug != "" {
		if !isSlug.MatchString(slug) {
			return feed{}, problem.New(problem.NotFound, "There is no such feed: %.80q is not a slug.", slug)
		}
		f := feed{path: r.URL.Path, title: "Changes to %s", page: path.Dir(r.URL.Path), lang: lang.Of(r.Context())}
		if strings.HasPrefix(f.page, "/tools/") {
			f.query = journal.Query{Types: without(journal.ToolEvents, journal.EventEmbeddingsChanged), Slug: slug}
		} else {
			f.query = journal.Query{Types: without(journal.Events, journal.EventCatalogPublished, journal.EventEmbeddingsChanged), Categories: []string{slug}, From: 2}
		}
		return f, nil
	}
	i := slices.IndexFunc(feeds, func(f feed) bool { return f.path == r.URL.Path })
	if i < 0 {
		return feed{}, problem.New(problem.NotFound, "There is no such feed. Feeds: changes.atom, prices.atom, cimetiere.atom, changelog.atom, status.atom.")
	}
	f := feeds[i]
	f.lang, f.query.From = lang.English, 2 // the first release created the whole catalog
	if tools := r.URL.Query().Get("tools"); tools != "" {
		f.query.Tools = strings.Split(tools, ",")
		slices.Sort(f.query.Tools)
		f.query.Tools = slices.Compact(f.query.Tools)
		if len(f.query.Tools) > maxTools || slices.ContainsFunc(f.query.Tools, func(slug string) bool { return !isSlug.MatchString(slug) }) {
			return feed{}, problem.New(problem.BadInput, "tools must be 1 to %d slugs of tools, separated by commas (got %q).", maxTools, params.Truncate(tools))
		}
		f.path += "?tools=" + strings.Join(f.query.Tools, ",")
	}
	return f, nil
}

// maxTools is the number of tools that a feed may be limited to.
const maxTools = 50

var isSlug = regexp.MustCompile(`^[a-z0-9-]{1,80}$`)

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	f, err := find(r)
	if err != nil {
		return err
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return problem.New(problem.WrongMethod, "The method %s is not allowed here. Use GET.", r.Method)
	}
	ctx := r.Context()
	if h.config.Visitors != nil {
		ctx = h.config.Visitors.Identify(r)
	}
	entry, err := h.config.Cache.Get(ctx, cache.Key{Operation: "feed " + string(f.lang), Variables: f.document(f.until)}, func(ctx context.Context) (*cache.Entry, int, error) {
		if h.config.Visitors != nil {
			done, err := h.config.Visitors.Start(ctx)
			if err != nil {
				return nil, 0, err
			}
			defer done()
		}
		return h.render(ctx, f)
	})
	switch p := problem.Of(err); {
	case err == nil:
	case p.Code == problem.NotFound:
		return p
	case p.Code == problem.TooMany:
		w.Header().Set("Retry-After", "30")
		return p
	default:
		h.config.Log.ErrorContext(r.Context(), "reading an Atom feed failed", "feed", f.path, "cause", err, "request_id", problem.RequestID(r.Context()))
		return &problem.Problem{Code: problem.Unavailable, Message: "The catalog is temporarily unavailable. Try again in a minute.", Cause: err}
	}
	return entry.Write(w, r)
}

// render returns a feed and the number of its release; 0 before the first.
func (h *Handler) render(ctx context.Context, f feed) (_ *cache.Entry, shown int, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	// Other responses may still be from the previous release.
	c := contents{db: h.config.Store.Read}
	if c.shown, err = h.config.Release(ctx, h.config.Cache.Newest()); err != nil {
		return nil, 0, err
	}
	shown = c.shown.Number()
	if f.until > shown {
		return nil, shown, problem.New(problem.NotFound, "Edition %d has not been published.", f.until)
	}
	list, err := h.events(ctx, c.db, f, cmp.Or(f.until, shown))
	if err == nil {
		err = c.load(ctx, f, list.events)
	}
	if err != nil {
		return nil, shown, err
	}
	caching := "s-maxage=3600, stale-while-revalidate=86400"
	if shown == 0 {
		caching = "no-store" // the first release may be published at any time
	}
	entry, err := atomxml.NewEntry(h.document(f, list, &c), caching)
	return entry, shown, err
}

// list is what a document of a feed contains.
type list struct {
	events  []*journal.Event
	summary *journal.Event // of a release with more events than the document has; nil if it has all
	earlier int            // the newest release of the archive before it; 0 if there is none
}

// events returns the newest events of a feed up to a release. If a release has more than
// there is room for, prices and retirements come first. Feeds about the whole catalog
// start with the catalog.published event of the first release.
func (h *Handler) events(ctx context.Context, db *ent.Client, f feed, release int) (l list, err error) {
	entries, query := db.JournalEntry, f.query
	query.UpTo, query.NewestFirst, query.Limit = release, true, maxEntries
	// Page returns fewer events if they are long, which is fine here.
	events, more, err := journal.Page(ctx, entries, query)
	if err != nil {
		return l, err
	}
	if more {
		return h.grouped(ctx, entries, f, events)
	}
	l.events = withoutPrices(f, events)
	if len(events) == maxEntries || f.page != "" || len(query.Tools) > 0 {
		return l, nil
	}
	first, err := journal.Read(ctx, entries, journal.Query{Types: []string{journal.EventCatalogPublished}, UpTo: 1, Limit: 1})
	if len(first) > 0 && slices.ContainsFunc(query.Types, func(event string) bool { return readCatalog(first[0]).Events[event] > 0 }) {
		l.events = append(l.events, first[0])
	}
	return l, err
}

// grouped replaces the events of the earliest release in a list that ends within it: prices
// and retirements come first, and a summary stands for what there is no room for.
func (h *Handler) grouped(ctx context.Context, entries *ent.JournalEntryClient, f feed, events []*journal.Event) (l list, err error) {
	cut := events[len(events)-1].Release
	whole := slices.IndexFunc(events, func(e *journal.Event) bool { return e.Release == cut })
	l.earlier = cut
	if whole == 0 { // the archive cannot have more of it
		l.earlier--
	}
	if l.earlier < max(1, f.query.From) {
		l.earlier = 0
	}
	events = events[:whole]
	urgent := []string{journal.EventPriceChanged, journal.EventToolRetired}
	query := f.query
	query.From, query.UpTo, query.NewestFirst = cut, cut, true
	for _, first := range []bool{true, false} {
		query.Types = slices.DeleteFunc(slices.Clone(f.query.Types), func(event string) bool { return slices.Contains(urgent, event) != first })
		query.Limit = maxEntries - 1 - len(events)
		if len(query.Types) == 0 || query.Limit == 0 {
			continue
		}
		found, _, err := journal.Page(ctx, entries, query)
		if err != nil {
			return l, err
		}
		events = append(events, found...)
	}
	l.events = withoutPrices(f, events)
	published, err := journal.Read(ctx, entries, journal.Query{Types: []string{journal.EventCatalogPublished}, From: cut, UpTo: cut, Limit: 1})
	if len(published) > 0 {
		l.summary = published[0]
	}
	return l, err
}

// withoutPrices omits updates of nothing but a price, which have an event of their
// own, from the feeds about one item.
func withoutPrices(f feed, events []*journal.Event) []*journal.Event {
	if f.page == "" {
		return events
	}
	return slices.DeleteFunc(events, func(e *journal.Event) bool {
		return e.Type == journal.EventToolUpdated && !slices.ContainsFunc(e.Fields, func(field string) bool {
			return field != "price" && field != "pricing" && field != "updated_at"
		}) && slices.Contains(e.Fields, "price")
	})
}

// catalog is the data of a catalog.published event.
type catalog struct {
	Tools       int            `json:"tools_total"`
	Retired     int            `json:"tools_retired"`
	Comparisons int            `json:"comparatifs_total"`
	Events      map[string]int `json:"events"`
}

func readCatalog(event *journal.Event) (c catalog) {
	_ = json.Unmarshal(event.After, &c) // the journal wrote it
	return c
}

func (h *Handler) document(f feed, list list, c *contents) atomxml.Feed {
	id, title := strings.TrimPrefix(f.path, "/"), f.lang.Text(f.title)
	address := func(until int) string { return h.config.PublicURL + f.document(until) }
	alternate := atomxml.Link{Rel: "alternate", Href: h.config.PublicURL + "/"}
	if f.page != "" {
		id, title = string(f.lang)+f.path, f.lang.Text(f.title, c.item)
		address = func(until int) string { return h.config.PublicURL + f.lang.Path(f.document(until)) }
		alternate = atomxml.Page(h.config.PublicURL + f.lang.Path(c.itemPage(f)))
	}
	d := atomxml.Feed{
		Lang: string(f.lang), ID: h.tag(id), Title: atomxml.Text(h.config.ServiceName + ": " + title),
		Links:  []atomxml.Link{atomxml.Self(address(f.until)), alternate},
		Author: atomxml.Text(h.config.ServiceName), AuthorURI: h.config.PublicURL,
		Rights: atomxml.Text(h.config.Credit),
	}
	if list.earlier > 0 {
		d.Links = append(d.Links, atomxml.Other("prev-archive", address(list.earlier)))
	}
	if f.until > 0 {
		d.Links = append(d.Links, atomxml.Other("current", address(0)))
		d.History, d.Archive = atomxml.HistoryNamespace, &struct{}{}
	}
	for _, event := range list.events {
		d.Entries = append(d.Entries, h.entry(f.lang, event, c))
	}
	if list.summary != nil {
		d.Entries = append(d.Entries, h.summary(f, id, list.summary, c))
	}
	return d
}

// summary returns the entry about all events of a release, which links to its edition.
func (h *Handler) summary(f feed, id string, published *journal.Event, c *contents) atomxml.Entry {
	e := h.entry(f.lang, published, c)
	e.ID = h.tag(id + "/editions/" + strconv.Itoa(published.Release))
	e.Title = atomxml.Text(f.lang.Text("Edition %d has more changes than fit in this feed", published.Release))
	e.Content.Text = e.Title
	if f.page == "" && len(f.query.Tools) == 0 { // otherwise, the counts are about more than the feed
		var lines []string
		for _, event := range f.query.Types {
			if n := readCatalog(published).Events[event]; n > 0 {
				lines = append(lines, f.lang.Text("%s: %d", f.lang.Text(journal.Titles[event]), n))
			}
		}
		e.Content.Text = atomxml.Text(strings.Join(lines, "\n"))
	}
	return e
}

func (h *Handler) entry(l lang.Language, event *journal.Event, c *contents) atomxml.Entry {
	d := description{l, event, readState(event.Before), readState(event.After)}
	title, lines := d.describe(c.name(event))
	e := atomxml.Entry{
		ID: h.tag(event.ID()), Title: atomxml.Text(strings.Join(strings.FieldsFunc(title, separates), " ")), Updated: atomxml.Time{Time: event.At},
		Links:   []atomxml.Link{atomxml.Page(h.config.PublicURL + l.Path(c.pageOf(event)))},
		Content: atomxml.Content{Type: "text", Text: atomxml.Text(strings.Join(lines, "\n"))},
	}
	if event.Category != "" {
		e.Category = &atomxml.Category{Term: atomxml.Text(event.Category)}
	}
	return e
}

// separates reports whether a character is white space that may break a line: French
// has spaces that may not.
func separates(r rune) bool { return unicode.IsSpace(r) && r != '\u00a0' && r != '\u202f' }

func (h *Handler) tag(name string) string { return atomxml.Tag(h.config.PublicURL, name) }
