// Package atom serves the journal's events as Atom feeds.
package atom

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"palmares/ent"
	"palmares/ent/tool"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

// Config configures a Handler.
type Config struct {
	Store       *store.Store
	Cache       *cache.Cache
	PublicURL   string
	ServiceName string
	Credit      string // the line that reuse of the data must show
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
	{"changes.atom", "What changed", slices.DeleteFunc(slices.Clone(journal.Events), func(event string) bool { return event == journal.EventCatalogPublished })},
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
		return problem.New(problem.NotFound, "There is no such feed. Feeds: changes.atom, prices.atom, cimetiere.atom.")
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return problem.New(problem.WrongMethod, "The method is not allowed: use GET.")
	}
	f := feeds[i]
	entry, err := h.config.Cache.Get(r.Context(), cache.Key{Operation: "feed " + f.name}, func(ctx context.Context) (*cache.Entry, int, error) {
		return h.render(ctx, f)
	})
	if err != nil {
		h.config.Log.ErrorContext(r.Context(), "reading an Atom feed failed", "feed", f.name, "cause", err, "request_id", problem.RequestID(r.Context()))
		return &problem.Problem{Code: problem.Unavailable, Message: "The catalog cannot be read at the moment.", Cause: err}
	}
	return entry.Write(w, r)
}

// render returns a feed and the release it shows, 0 before the first.
func (h *Handler) render(ctx context.Context, f feed) (_ *cache.Entry, shown int, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var events []*journal.Event
	tools := map[string]*ent.Tool{}
	err = h.config.Store.Snapshot(ctx, 0, func(ctx context.Context, release *ent.Release) error {
		if release != nil {
			shown = release.ID
		}
		// Page returns fewer entries if their texts are long, which is fine here.
		if events, _, err = journal.Page(ctx, h.config.Store.Read.JournalEntry, journal.Query{Types: f.types, NewestFirst: true, Limit: maxEntries}); err != nil {
			return err
		}
		var slugs []string
		for _, event := range events {
			if event.AboutTool() {
				slugs = append(slugs, event.Slug)
			}
		}
		rows, err := h.config.Store.Read.Tool.Query().Where(tool.IDIn(slugs...)).Select(tool.FieldID, tool.FieldName, tool.FieldCanonicalURL).All(ctx)
		for _, row := range rows {
			tools[row.ID] = row
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	header := http.Header{
		"Content-Type":           {"application/atom+xml; charset=utf-8"},
		"Cache-Control":          {"s-maxage=3600, stale-while-revalidate=86400"},
		"Vary":                   {"Accept-Encoding"},
		"X-Content-Type-Options": {"nosniff"},
	}
	if shown == 0 {
		header.Set("Cache-Control", "no-store") // the first release may follow at any time
	}
	if len(events) > 0 {
		header.Set("Last-Modified", events[0].At.UTC().Format(http.TimeFormat))
	}
	body, err := h.document(f, events, tools)
	return cache.NewEntry(body, header), shown, err
}
