// Package atom serves what changed in the catalog as Atom feeds, for feed
// readers. What an event is, the journal says; here it only gets a sentence.
package atom

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"palmares/ent"
	"palmares/ent/tool"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

// Config is what feeds are made of.
type Config struct {
	Store       *store.Store
	Answers     *cache.Cache
	PublicURL   string // where callers reach us
	ServiceName string
	Credit      string // the line that reuse of the data must show
	Log         *slog.Logger
}

// Path is below which the feeds are.
const Path = "/feeds/"

// Every feed there is.
var feeds = []feed{
	{"changes.atom", "What changed", slices.DeleteFunc(slices.Clone(journal.Events), func(event string) bool { return event == journal.EventCatalogPublished })},
	{"prices.atom", "Price changes", []string{journal.EventPriceChanged}},
	{"cimetiere.atom", "Retired tools", []string{journal.EventToolRetired}},
}

// feed is the newest events of some types.
type feed struct {
	name, title string
	types       []string
}

const (
	entries      = 100
	cacheControl = "s-maxage=3600, stale-while-revalidate=86400"
	readTime     = 5 * time.Second
)

// Handler serves every feed.
type Handler struct {
	config Config
	feeds  map[string]feed
}

// New serves the feeds below Path.
func New(cfg Config) *Handler {
	h := &Handler{config: cfg, feeds: map[string]feed{}}
	h.config.PublicURL = strings.TrimRight(cfg.PublicURL, "/")
	for _, f := range feeds {
		h.feeds[f.name] = f
	}
	return h
}

// ServeHTTP answers with a feed, or with the one form of error.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.serve(w, r); err != nil && r.Context().Err() == nil {
		problem.Write(w, err)
	}
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	f, known := h.feeds[strings.TrimPrefix(r.URL.Path, Path)]
	if !known {
		return problem.New(problem.NotFound, "There is no such feed. Feeds: changes.atom, prices.atom, cimetiere.atom.")
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return problem.New(problem.WrongMethod, "The method is not allowed: use GET.")
	}
	entry, err := h.config.Answers.Get(r.Context(), cache.Question{Operation: "feed " + f.name}, func(ctx context.Context) (*cache.Entry, int, error) {
		return h.render(ctx, f)
	})
	if err != nil {
		h.config.Log.ErrorContext(r.Context(), "a feed cannot be read", "feed", f.name, "cause", err, "request_id", problem.RequestID(r.Context()))
		return &problem.Problem{Code: problem.Unavailable, Message: "The catalog cannot be read at the moment.", Cause: err}
	}
	return entry.Write(w, r)
}

// render reads and writes a feed, and tells the release that it is of, or 0
// before the first.
func (h *Handler) render(ctx context.Context, f feed) (_ *cache.Entry, of int, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	var events []*journal.Event
	tools := map[string]*ent.Tool{}
	err = h.config.Store.Snapshot(ctx, func(tx *ent.Tx, release *ent.Release) error {
		if release != nil {
			of = release.ID
		}
		// Where texts are long, the newest few of them are enough.
		if events, _, err = journal.Page(ctx, tx.JournalEntry, journal.Query{Types: f.types, NewestFirst: true, Limit: entries}); err != nil {
			return err
		}
		var slugs []string
		for _, event := range events {
			if event.AboutTool() {
				slugs = append(slugs, event.Slug)
			}
		}
		rows, err := tx.Tool.Query().Where(tool.IDIn(slugs...)).Select(tool.FieldID, tool.FieldName, tool.FieldCanonicalURL).All(ctx)
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
		"Cache-Control":          {cacheControl},
		"Vary":                   {"Accept-Encoding"},
		"X-Content-Type-Options": {"nosniff"},
	}
	if of == 0 {
		header["Cache-Control"] = []string{"no-store"} // nothing is published yet: that will not last
	}
	if len(events) > 0 {
		header["Last-Modified"] = []string{events[0].At.UTC().Format(http.TimeFormat)}
	}
	body, err := h.document(f, events, tools)
	return cache.NewEntry(body, header), of, err
}
