// Package feeds serves the journal's events as Atom feeds.
package feeds

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"path"
	"regexp"
	"slices"
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
func find(r *http.Request) (feed, error) {
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
	entry, err := h.config.Cache.Get(ctx, cache.Key{Operation: "feed " + string(f.lang), Variables: f.path}, func(ctx context.Context) (*cache.Entry, int, error) {
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
	events, err := h.events(ctx, c.db, f, shown)
	if err == nil {
		err = c.load(ctx, f, events)
	}
	if err != nil {
		return nil, shown, err
	}
	caching := "s-maxage=3600, stale-while-revalidate=86400"
	if shown == 0 {
		caching = "no-store" // the first release may be published at any time
	}
	entry, err := atomxml.NewEntry(h.document(f, events, &c), caching)
	return entry, shown, err
}

// events returns the newest events of a feed up to a release. Feeds about the whole
// catalog start with the catalog.published event of the first release.
func (h *Handler) events(ctx context.Context, db *ent.Client, f feed, release int) ([]*journal.Event, error) {
	entries, query := db.JournalEntry, f.query
	query.UpTo, query.NewestFirst, query.Limit = release, true, maxEntries
	// Page returns fewer events if they are long, which is fine here.
	events, more, err := journal.Page(ctx, entries, query)
	if err != nil || more || len(events) == maxEntries || f.page != "" || len(query.Tools) > 0 {
		return withoutPrices(f, events), err
	}
	first, err := journal.Read(ctx, entries, journal.Query{Types: []string{journal.EventCatalogPublished}, UpTo: 1, Limit: 1})
	if len(first) > 0 && slices.ContainsFunc(query.Types, func(event string) bool { return readCatalog(first[0]).Events[event] > 0 }) {
		events = append(events, first[0])
	}
	return events, err
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

func (h *Handler) document(f feed, events []*journal.Event, c *contents) atomxml.Feed {
	id, address, title := strings.TrimPrefix(f.path, "/"), h.config.PublicURL+f.path, f.lang.Text(f.title)
	alternate := atomxml.Link{Rel: "alternate", Href: h.config.PublicURL + "/"}
	if f.page != "" {
		id, address, title = string(f.lang)+f.path, h.config.PublicURL+f.lang.Path(f.path), f.lang.Text(f.title, c.item)
		alternate = atomxml.Page(h.config.PublicURL + f.lang.Path(c.itemPage(f)))
	}
	d := atomxml.Feed{
		Lang: string(f.lang), ID: h.tag(id), Title: atomxml.Text(h.config.ServiceName + ": " + title),
		Links:  []atomxml.Link{atomxml.Self(address), alternate},
		Author: atomxml.Text(h.config.ServiceName), AuthorURI: h.config.PublicURL,
		Rights: atomxml.Text(h.config.Credit),
	}
	if len(events) > 0 {
		d.Updated.Time = events[0].At
	}
	for _, event := range events {
		d.Entries = append(d.Entries, h.entry(f.lang, event, c))
	}
	return d
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
