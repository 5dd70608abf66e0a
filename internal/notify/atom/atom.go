// Package atom serves the journal's events as Atom feeds.
package atom

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"palmares/ent"
	"palmares/ent/tool"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/atomxml"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

// Config configures a Handler.
type Config struct {
	Store       *store.Store
	Cache       *cache.Cache
	PublicURL   string
	PagePrefix  string // precedes the paths that entries link to, such as "/en"
	ServiceName string
	Credit      string // the credit line that reuse of the data requires
	Log         *slog.Logger
}

// Path is the prefix of all feeds.
const Path = "/feeds/"

// feed is a list of the newest events of some types.
type feed struct {
	name, title string
	types       []string
}

var feeds = []feed{
	{"changes.atom", "What changed", slices.DeleteFunc(slices.Clone(journal.Events), func(event string) bool {
		return event == journal.EventCatalogPublished || event == journal.EventPriceBackfilled // which are old news
	})},
	{"prices.atom", "Price changes", []string{journal.EventPriceChanged}},
	{"cimetiere.atom", "Retired tools", []string{journal.EventToolRetired}},
}

const (
	maxEntries  = 100
	readTimeout = 5 * time.Second
)

// Handler serves the feeds below Path.
type Handler struct{ config Config }

// New returns a handler for every feed.
func New(cfg Config) *Handler { return &Handler{cfg} }

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.serve(w, r); err != nil && r.Context().Err() == nil {
		problem.Write(w, err)
	}
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	i := slices.IndexFunc(feeds, func(f feed) bool { return Path+f.name == r.URL.Path })
	if i < 0 {
		return problem.New(problem.NotFound, "There is no such feed. Feeds: changes.atom, prices.atom, cimetiere.atom, changelog.atom, status.atom.")
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return problem.New(problem.WrongMethod, "The method %s is not allowed here. Use GET.", r.Method)
	}
	f := feeds[i]
	entry, err := h.config.Cache.Get(r.Context(), cache.Key{Operation: "feed " + f.name}, func(ctx context.Context) (*cache.Entry, int, error) {
		return h.render(ctx, f)
	})
	if err != nil {
		h.config.Log.ErrorContext(r.Context(), "reading an Atom feed failed", "feed", f.name, "cause", err, "request_id", problem.RequestID(r.Context()))
		return &problem.Problem{Code: problem.Unavailable, Message: "The catalog is temporarily unavailable. Try again in a minute.", Cause: err}
	}
	return entry.Write(w, r)
}

// render returns a feed and the number of its release; 0 before the first.
func (h *Handler) render(ctx context.Context, f feed) (_ *cache.Entry, shown int, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var events []*journal.Event
	names := map[string]string{}
	err = h.config.Store.Snapshot(ctx, func(db *ent.Client, newest *ent.Release) (err error) {
		// Other responses may still be from the previous release.
		if shown = h.config.Cache.Newest(); shown == 0 && newest != nil {
			shown = newest.ID
		}
		if events, err = h.events(ctx, db, f, shown); err != nil {
			return err
		}
		var slugs []string
		for _, event := range events {
			if event.AboutTool() {
				slugs = append(slugs, event.Slug)
			}
		}
		rows, err := db.Tool.Query().Where(store.Tools.At(shown), tool.IDIn(slugs...)).Select(tool.FieldID, tool.FieldName).All(ctx)
		for _, row := range rows {
			names[row.ID] = row.Name
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	caching := "s-maxage=3600, stale-while-revalidate=86400"
	if shown == 0 {
		caching = "no-store" // the first release may be published at any time
	}
	entry, err := atomxml.NewEntry(h.document(f, events, names), caching)
	return entry, shown, err
}

// events returns the newest events of a feed up to a release. The first release
// created the whole catalog, so only its catalog.published event is included.
func (h *Handler) events(ctx context.Context, db *ent.Client, f feed, release int) ([]*journal.Event, error) {
	entries := db.JournalEntry
	// Page returns fewer events if they are long, which is fine here.
	events, more, err := journal.Page(ctx, entries, journal.Query{Types: f.types, From: 2, UpTo: release, NewestFirst: true, Limit: maxEntries})
	if err != nil || more || len(events) == maxEntries {
		return events, err
	}
	first, err := journal.Read(ctx, entries, journal.Query{Types: []string{journal.EventCatalogPublished}, UpTo: 1, Limit: 1})
	if len(first) > 0 && slices.ContainsFunc(f.types, func(event string) bool { return readCatalog(first[0]).Events[event] > 0 }) {
		events = append(events, first[0])
	}
	return events, err
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

func (h *Handler) document(f feed, events []*journal.Event, names map[string]string) atomxml.Feed {
	d := atomxml.Feed{
		ID: h.tag("feeds/" + f.name), Title: atomxml.Text(h.config.ServiceName + ": " + f.title),
		Links: []atomxml.Link{
			atomxml.Self(h.config.PublicURL + Path + f.name),
			{Rel: "alternate", Href: h.config.PublicURL + "/"},
		},
		Author: atomxml.Text(h.config.ServiceName), AuthorURI: h.config.PublicURL,
		Rights: atomxml.Text(h.config.Credit),
	}
	if len(events) > 0 {
		d.Updated.Time = events[0].At
	}
	for _, event := range events {
		name := event.Slug
		if event.AboutTool() { // a comparison may have a tool's slug
			name = cmp.Or(names[event.Slug], name)
		}
		d.Entries = append(d.Entries, h.entry(event, name))
	}
	return d
}

func (h *Handler) entry(event *journal.Event, name string) atomxml.Entry {
	title, lines := describe(event, readState(event.Before), readState(event.After), name)
	e := atomxml.Entry{
		ID: h.tag(event.ID()), Title: atomxml.Text(strings.Join(strings.Fields(title), " ")), Updated: atomxml.Time{Time: event.At},
		Links:   []atomxml.Link{atomxml.Page(h.config.PublicURL + h.config.PagePrefix + pageOf(event))},
		Content: atomxml.Content{Type: "text", Text: atomxml.Text(strings.Join(lines, "\n"))},
	}
	if event.Category != "" {
		e.Category = &atomxml.Category{Term: atomxml.Text(event.Category)}
	}
	return e
}

// pageOf returns the path of the page about an event. For removed objects, that is the
// page as of the previous release. If a tool is retired or returns later, the site
// redirects to its current page.
func pageOf(event *journal.Event) string {
	path := "/tools/" + event.Slug
	switch event.Type {
	case journal.EventCatalogPublished:
		return "/releases"
	case journal.EventCategoryCreated, journal.EventCategoryUpdated, journal.EventCategoryRemoved:
		path = "/categories/" + event.Slug
	case journal.EventToolRetired, journal.EventRetiredUpdated:
		path = "/graveyard/" + event.Slug
	case journal.EventComparisonPublished, journal.EventComparisonUpdated, journal.EventComparisonRemoved:
		path = "/comparisons/" + event.Slug
	}
	if strings.HasSuffix(event.Type, ".removed") {
		path += "?as_of=" + strconv.Itoa(event.Release-1)
	}
	return path
}

func (h *Handler) tag(name string) string { return atomxml.Tag(h.config.PublicURL, name) }

// state is a record before or after a change, as the event shows it.
type state map[string]any

// readState returns nil for a record that does not exist.
func readState(value []byte) (s state) {
	_ = json.Unmarshal(value, &s) // the journal wrote it
	return s
}

// str returns a field if it is a string.
func (s state) str(name string) string {
	value, _ := s[name].(string)
	return value
}

// text formats a field for people.
func (s state) text(name string) string {
	if s[name] == nil {
		return "none"
	}
	return fmt.Sprint(s[name])
}

var reasons = map[string]string{
	"mort": "closed", "acquis": "acquired", "deprecie": "discontinued", "pivot": "became something else", "absorbe": "merged into another product",
}

// describe describes an event in a title and a few lines. current is the tool's
// current name, for events that do not contain one.
func describe(event *journal.Event, before, after state, current string) (title string, lines []string) {
	name := current
	for _, field := range []string{"label", "title", "name"} {
		name = cmp.Or(after.str(field), before.str(field), name)
	}
	switch event.Type {
	case journal.EventCatalogPublished:
		c := readCatalog(event)
		title = "The catalog was published with " + count(c.Tools, "tool") + ", " + count(c.Comparisons, "comparison") + " and " + count(c.Retired, "retired tool")
	case journal.EventToolCreated:
		title = "New tool: " + name
		if before != nil {
			title = name + " is back"
		}
		lines = []string{after.text("tagline"), "Price: " + after.text("price"), "Score: " + after.text("score")}
	case journal.EventCategoryCreated:
		title = "New category: " + name
	case journal.EventCategoryUpdated:
		if title = before.text("label") + " is now called " + name; !slices.Contains(event.Fields, "label") {
			title = "The category " + name + " was updated"
		}
	case journal.EventCategoryRemoved:
		title = "The category " + name + " was removed"
	case journal.EventToolUpdated, journal.EventRetiredUpdated, journal.EventComparisonUpdated:
		changed := strings.Join(withoutDate(event.Fields), ", ")
		title = name + ": " + strings.ReplaceAll(changed, "sections_hash", "review") + " changed"
		lines = differences(event.Fields, before, after)
	case journal.EventToolRetired:
		reason := after.text("reason")
		title = name + " is retired: " + cmp.Or(reasons[reason], reason)
		lines = []string{after.text("note")}
	case journal.EventToolRemoved:
		title = name + " is no longer in the catalog"
	case journal.EventPriceChanged:
		changed := "price"
		if before.text("price") == after.text("price") {
			changed = "pricing"
		}
		title = name + ": " + before.text(changed) + " → " + after.text(changed)
		lines = append(differences([]string{"price", "pricing"}, before, after), "Since "+after.text("changed_at"))
	case journal.EventComparisonPublished:
		title = "New comparison: " + name
		lines = []string{"Winner: " + after.text("winner")}
	case journal.EventComparisonRemoved:
		title = "No longer published: " + name
	case journal.EventEmbeddingsChanged:
		switch {
		case before == nil:
			title = name + ": its review is now available as text chunks"
		case after == nil:
			title = name + ": its review is no longer available as text chunks"
		case slices.Contains(event.Fields, "chunks"):
			title = name + ": the text of its review changed"
		default:
			title = name + ": the metadata of its review chunks changed"
		}
	}
	if len(lines) == 0 {
		lines = []string{title}
	}
	return title, lines
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// withoutDate omits updated_at, which changes with every other field, unless it is
// the only change.
func withoutDate(fields []string) []string {
	others := slices.DeleteFunc(slices.Clone(fields), func(field string) bool { return field == "updated_at" })
	if len(others) == 0 {
		return fields
	}
	return others
}

// unshownFields have values that are not for people, or too long for a list.
var unshownFields = []string{"sections_hash", "translations", "sources"}

func differences(fields []string, before, after state) (lines []string) {
	for _, field := range withoutDate(fields) {
		if was, is := before.text(field), after.text(field); was != is && !slices.Contains(unshownFields, field) {
			lines = append(lines, field+": "+was+" → "+is)
		}
	}
	return lines
}
