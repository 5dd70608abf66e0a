// Package atom serves the journal's events as Atom feeds.
package atom

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
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

// document has the elements of RFC 4287 that the feeds use.
type document struct {
	XMLName   xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
	ID        string   `xml:"id"`
	Title     string   `xml:"title"`
	Updated   string   `xml:"updated"`
	Links     []link   `xml:"link"`
	Author    string   `xml:"author>name"`
	AuthorURI string   `xml:"author>uri,omitempty"`
	Rights    string   `xml:"rights,omitempty"`
	Entries   []entry  `xml:"entry"`
}

type link struct {
	Rel  string `xml:"rel,attr"`
	Type string `xml:"type,attr,omitempty"`
	Href string `xml:"href,attr"`
}

type entry struct {
	ID       string    `xml:"id"`
	Title    string    `xml:"title"`
	Updated  string    `xml:"updated"`
	Category *category `xml:"category"`
	Links    []link    `xml:"link"`
	Content  content   `xml:"content"`
}

type category struct {
	Term string `xml:"term,attr"`
}

type content struct {
	Type string `xml:"type,attr"`
	Text string `xml:",chardata"`
}

func (h *Handler) document(f feed, events []*journal.Event, tools map[string]*ent.Tool) ([]byte, error) {
	d := document{
		ID: h.tag("feeds/" + f.name), Title: clean(h.config.ServiceName + ": " + f.title), Updated: timestamp(time.Unix(0, 0)),
		Links: []link{
			{Rel: "self", Type: "application/atom+xml", Href: h.config.PublicURL + Path + f.name},
			{Rel: "alternate", Href: h.config.PublicURL + "/"},
		},
		Author: clean(h.config.ServiceName), AuthorURI: h.config.PublicURL,
		Rights: clean(h.config.Credit),
	}
	if len(events) > 0 {
		d.Updated = timestamp(events[0].At)
	}
	for _, event := range events {
		current := &ent.Tool{Name: event.Slug}
		if found := tools[event.Slug]; found != nil && event.AboutTool() { // a comparison may have a tool's slug
			current = found
		}
		d.Entries = append(d.Entries, h.entry(event, current))
	}
	out := bytes.NewBufferString(xml.Header)
	encoder := xml.NewEncoder(out)
	encoder.Indent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func (h *Handler) entry(event *journal.Event, current *ent.Tool) entry {
	before, after := readState(event.Before), readState(event.After)
	title, lines := describe(event, before, after, current.Name)
	e := entry{
		ID: h.tag(event.ID()), Title: clean(strings.Join(strings.Fields(title), " ")), Updated: timestamp(event.At),
		Content: content{Type: "text", Text: clean(strings.Join(lines, "\n"))},
	}
	if event.Category != "" {
		e.Category = &category{clean(event.Category)}
	}
	page := cmp.Or(after.str("canonical_url"), before.str("canonical_url"), current.CanonicalURL)
	if u, err := url.Parse(page); err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" {
		e.Links = []link{{Rel: "alternate", Href: iri(clean(page))}}
	}
	return e
}

// tag returns a permanent, globally unique identifier (RFC 4151).
func (h *Handler) tag(name string) string {
	host := "localhost"
	if u, err := url.Parse(h.config.PublicURL); err == nil && u.Hostname() != "" && !strings.Contains(u.Hostname(), ":") {
		host = u.Hostname()
	}
	return "tag:" + host + ",2026:" + name
}

func timestamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// state is what an event shows of a record before or after the change.
type state map[string]any

// readState returns nil for a record that does not exist.
func readState(value []byte) (s state) {
	_ = json.Unmarshal(value, &s) // the journal wrote it
	return s
}

// str returns a field if it is text.
func (s state) str(name string) string {
	text, _ := s[name].(string)
	return text
}

// text returns a field for people to read.
func (s state) text(name string) string {
	if s[name] == nil {
		return "none"
	}
	return fmt.Sprint(s[name])
}

var reasons = map[string]string{
	"mort": "closed", "acquis": "acquired", "deprecie": "discontinued", "pivot": "became something else", "absorbe": "merged into another product",
}

// describe says what happened, in a title and a few lines. current is the
// tool's present name, for events that do not contain one.
func describe(event *journal.Event, before, after state, current string) (title string, lines []string) {
	name := cmp.Or(after.str("name"), after.str("title"), before.str("name"), before.str("title"), current)
	switch event.Type {
	case journal.EventToolCreated:
		title = "New tool: " + name
		if before != nil {
			title = name + " is back"
		}
		lines = []string{after.text("tagline"), "Price: " + after.text("price"), "Score: " + after.text("score")}
	case journal.EventToolUpdated, journal.EventComparisonUpdated:
		title = name + ": " + strings.Join(withoutDate(event.Fields), ", ") + " changed"
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

// withoutDate omits the date, which changes with everything, unless nothing
// else changed.
func withoutDate(fields []string) []string {
	others := slices.DeleteFunc(slices.Clone(fields), func(field string) bool { return field == "updated_at" })
	if len(others) == 0 {
		return fields
	}
	return others
}

func differences(fields []string, before, after state) (lines []string) {
	for _, field := range withoutDate(fields) {
		if was, is := before.text(field), after.text(field); was != is {
			lines = append(lines, field+": "+was+" → "+is)
		}
	}
	return lines
}

// clean removes characters that XML 1.0 does not allow.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r', r >= 0x20 && r <= 0xD7FF, r >= 0xE000 && r <= 0xFFFD, r >= 0x10000:
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, ""))
}

var (
	schemeAndHost = regexp.MustCompile(`^[^:]*://[^/?#]*`)
	// escapable matches existing escapes and characters that RFC 3987 does not allow.
	escapable = regexp.MustCompile("%[0-9A-Fa-f]{2}|[\\x00-\\x20\\x7f\"<>\\\\^`{|}%]")
)

// iri escapes characters that browsers accept in a URL and RFC 3987 does not,
// because a strict reader would reject the whole feed. Nothing is escaped twice.
func iri(address string) string {
	host := schemeAndHost.FindString(address)
	path, fragment, found := strings.Cut(address[len(host):], "#")
	if found { // only one # starts a fragment
		path += "#" + strings.ReplaceAll(fragment, "#", "%23")
	}
	path = strings.NewReplacer("[", "%5B", "]", "%5D").Replace(path) // brackets are for IPv6 hosts only
	return escapable.ReplaceAllStringFunc(host+path, func(match string) string {
		if len(match) > 1 {
			return match
		}
		return fmt.Sprintf("%%%02X", match[0])
	})
}
