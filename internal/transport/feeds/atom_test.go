package feeds_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"palmares/ent"
	"palmares/ent/journalentry"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/record"
	"palmares/internal/catalog/release"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/transport/feeds"
	"palmares/internal/web/page"
)

// hostile has characters that are hard to encode; a feed allows all but NUL.
const hostile = "<script>alert(1)</script> ]]> <![CDATA[ &amp; &#0; \x01\x0b\x1f\x7f\ufffe\uffff \"'\t é 😀 \u2028 --> <?xml?>"

func aTool(slug, name string, change ...func(*record.Tool)) *record.Tool {
	return feedtest.Tool(slug, append([]func(*record.Tool){func(t *record.Tool) { t.Name = name }}, change...)...)
}

func at(price string) func(*record.Tool) {
	return func(t *record.Tool) { t.Price, t.UpdatedAt = price, "2026-11-02" }
}

// newHandler returns a handler that detects each release before it responds.
func newHandler(s *store.Store) http.Handler {
	quiet := slog.New(slog.DiscardHandler)
	responses := cache.New(16<<20, nil, quiet)
	return newHandlerFor(s, responses, nil)
}

func newHandlerFor(s *store.Store, responses *cache.Cache, visitors feeds.Visitors) http.Handler {
	quiet := slog.New(slog.DiscardHandler)
	catalog := release.NewCatalog(s, quiet, 1<<20, nil)
	h := feeds.New(feeds.Config{
		Store: s, Cache: responses, PublicURL: "https://api.palmares.example:8443", ServiceName: "palmarès <&>", Credit: "Source : palmarès & Cie", Log: quiet, Visitors: visitors,
		Release: func(ctx context.Context, number int) (*release.Release, error) {
			newest, err := catalog.Newest(ctx)
			if err != nil || number == 0 || number == newest.Number() {
				return newest, err
			}
			return catalog.Earlier(newest, newest.Numbered(number)), nil
		},
	})
	mux := http.NewServeMux()
	for _, path := range []string{feeds.Path, feeds.ToolPath, feeds.CategoryPath} {
		mux.Handle(path, h)
	}
	return page.Localize(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if release, err := s.CurrentRelease(r.Context()); err == nil && release != nil {
			_ = responses.Renew(release.ID)
		}
		if strings.HasPrefix(r.URL.Path, feeds.Path) { // a mux would redirect some paths
			h.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
}

// charged counts what the budget of a visitor pays for.
type charged struct {
	identified, started int
	refusal             error
}

func (c *charged) Identify(r *http.Request) context.Context { c.identified++; return r.Context() }

func (c *charged) Start(context.Context) (func(), error) { c.started++; return func() {}, c.refusal }

// Feeds that are not cached are on the visitor's budget, also those that do not exist, and
// a name like an unknown one is found without the database.
func TestFeedsAreCharged(t *testing.T) {
	statements := []string{}
	cfg := testkit.SQLite(t)
	cfg.OnStatement = func(_ context.Context, _, statement string) func(error) {
		statements = append(statements, statement)
		return func(error) {}
	}
	s := testkit.Open(t, cfg)
	feedtest.Publish(t, s, demo.Catalog())
	visitors := &charged{}
	h := newHandlerFor(s, cache.New(16<<20, nil, slog.New(slog.DiscardHandler)), visitors)
	get(h, "/en/tools/zzz/changes.atom") // loads the catalog
	statements = nil
	for i, want := range []struct{ status, started int }{{404, 2}, {404, 3}, {200, 4}, {200, 4}} {
		path := "/en/tools/plum/changes.atom"
		if want.status == 200 {
			path = "/en/tools/plume/changes.atom"
		}
		if got := get(h, path); got.Code != want.status || visitors.started != want.started || i < 2 && !strings.Contains(got.Body.String(), "plume") {
			t.Errorf("request %d: got %d %s with %d charged, want %+v", i, got.Code, got.Body, visitors.started, want)
		}
	}
	for _, statement := range statements {
		check.True(t, !strings.Contains(statement, "`tools`") || strings.Contains(statement, "IN (") || strings.Contains(statement, "= ?"), "got %s, want no statement that reads all tools", statement)
	}
	visitors.refusal = problem.New(problem.TooMany, "Pages of your network have used up their computing time.")
	got := get(h, "/en/tools/plum/changes.atom")
	check.Equal(t, got.Code, 429, got.Header())
	check.True(t, got.Header().Get("Retry-After") != "", "got %d %v, want 429 with Retry-After", got.Code, got.Header())
}

func get(h http.Handler, name string, headers ...string) *httptest.ResponseRecorder {
	return serve(h, http.MethodGet, name, headers...)
}

func serve(h http.Handler, method, name string, headers ...string) *httptest.ResponseRecorder {
	if !strings.HasPrefix(name, "/") {
		name = "/feeds/" + name
	}
	r := httptest.NewRequest(method, name, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// parsed is a feed as a strict feed reader parses it.
type parsed struct {
	XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string   `xml:"http://www.w3.org/2005/Atom id"`
	Title   string   `xml:"http://www.w3.org/2005/Atom title"`
	Updated string   `xml:"http://www.w3.org/2005/Atom updated"`
	Rights  string   `xml:"http://www.w3.org/2005/Atom rights"`
	Author  struct {
		Name string `xml:"http://www.w3.org/2005/Atom name"`
	} `xml:"http://www.w3.org/2005/Atom author"`
	Links   []xmlLink `xml:"http://www.w3.org/2005/Atom link"`
	Entries []struct {
		ID      string    `xml:"http://www.w3.org/2005/Atom id"`
		Title   string    `xml:"http://www.w3.org/2005/Atom title"`
		Updated string    `xml:"http://www.w3.org/2005/Atom updated"`
		Content string    `xml:"http://www.w3.org/2005/Atom content"`
		Links   []xmlLink `xml:"http://www.w3.org/2005/Atom link"`
	} `xml:"http://www.w3.org/2005/Atom entry"`
}

type xmlLink struct {
	Rel  string `xml:"rel,attr"`
	Href string `xml:"href,attr"`
}

// isIRI matches the IRIs of RFC 3987, except hosts in brackets.
var isIRI = func() *regexp.Regexp {
	const char = `(?:[\w.~!$&'()*+,;=:@/-]|[^\x00-\x7f]|%[0-9A-Fa-f]{2})`
	return regexp.MustCompile(`^https?://` + char + `+(\?(?:` + char + `|\?)*)?(#(?:` + char + `|\?)*)?$`)
}()

// valid parses a feed and checks what RFC 4287 requires.
func valid(t *testing.T, got *httptest.ResponseRecorder) parsed {
	t.Helper()
	body := got.Body.Bytes()
	check.Must(t, got.Code, 200, "%v %s", got.Header(), string(body))
	check.Must(t, got.Header().Get("Content-Type"), "application/atom+xml; charset=utf-8", "%v %s", got.Header(), string(body))
	check.MustTrue(t, utf8.Valid(body), "got %d %v %s, want an Atom feed", got.Code, got.Header(), body)
	for _, r := range string(body) {
		if r < 0x20 && r != '\n' && r != '\t' && r != '\r' || r >= 0xFFFD && r <= 0xFFFF {
			t.Errorf("got character %U, want none that XML forbids", r)
		}
	}
	tokens := xml.NewDecoder(bytes.NewReader(body))
	for {
		if _, err := tokens.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, body)
		}
	}
	var f parsed
	check.OK(t, xml.Unmarshal(body, &f))
	withoutTools := func(address string) string { address, _, _ = strings.Cut(address, "?"); return address }
	self := slices.IndexFunc(f.Links, func(l xmlLink) bool { return l.Rel == "self" })
	check.True(t, f.ID != "" && f.Title != "" && f.Author.Name != "" && self >= 0, "got %+v, want all required elements", f)
	check.True(t, strings.HasPrefix(f.Links[self].Href, "https://api.palmares.example:8443/"), "got %+v, want all required elements", f)
	check.True(t, strings.HasSuffix(withoutTools(f.Links[self].Href), ".atom"), "got %+v, want all required elements", f)
	ids := map[string]bool{}
	for _, e := range f.Entries {
		check.True(t, e.ID != "", "got entry %+v, want all required elements", e)
		check.Equal(t, ids[e.ID], false, "entry %+v", e)
		check.True(t, e.Title != "" && e.Content != "", "got entry %+v, want all required elements", e)
		ids[e.ID] = true
		for _, l := range e.Links {
			check.True(t, isIRI.MatchString(l.Href), "got link %s, want an IRI", l.Href)
		}
		moment(t, e.Updated)
	}
	moment(t, f.Updated)
	return f
}

func moment(t *testing.T, text string) {
	t.Helper()
	_, err := time.Parse(time.RFC3339, text)
	check.Equal(t, err, nil)
}

func titles(f parsed) (all []string) {
	for _, e := range f.Entries {
		all = append(all, e.Title)
	}
	return all
}

func (f parsed) link(rel string) string {
	for _, l := range f.Links {
		if l.Rel == rel {
			return l.Href
		}
	}
	return ""
}

// links returns the paths of the pages that entries link to.
func links(f parsed) (all []string) {
	for _, e := range f.Entries {
		for _, l := range e.Links {
			all = append(all, strings.TrimPrefix(l.Href, "https://api.palmares.example:8443/en"))
		}
	}
	return all
}

func expect[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	check.Equal(t, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want), what)
}

func TestFeeds(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		h := newHandler(s)
		for _, name := range []string{"changes.atom", "prices.atom", "cimetiere.atom"} {
			got := get(h, name)
			expect(t, "Cache-Control before the first import", got.Header().Get("Cache-Control"), "no-store")
			expect(t, "entries before the first import", len(valid(t, got).Entries), 0)
		}
		duel := &record.Comparison{Slug: "duel", Title: "Lequel ?", ToolA: "plume", ToolB: "b", Winner: "b", WinnerNote: "Net.", Published: true, UpdatedAt: "2026-10-01", CanonicalURL: "https://palmares.example/duel"}
		old := &record.Retired{Slug: "old", Name: "Vieux", Category: "code", Reason: "mort", RetiredAt: "2026-06-01", Note: "Fermé."}
		rest := &record.Retired{Slug: "rest", Name: "Reste", Category: "code", Reason: "deprecie", RetiredAt: "2026-06-01", Note: "Oublié."}
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", aTool("plume", "Plume"), aTool("b", "B"), aTool("c", "C"), aTool("d", "D"), old, rest, duel))
		changed := *duel
		changed.Title = "Et alors ?"
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", aTool("plume", "Plume", at("15 €/mois")), aTool("b", "B", func(t *record.Tool) { t.Pricing = "freemium" }), aTool("old", "Vieux", func(t *record.Tool) { t.Tier = 1 }),
			&record.Retired{Slug: "c", Name: "C", Category: "code", Reason: "acquis", RetiredAt: "2026-11-02", Note: "Acheté."}, rest, &changed))

		got := get(h, "changes.atom")
		changes := valid(t, got)
		expect(t, "changes", strings.Join(titles(changes), "\n"), strings.Join([]string{
			"Vieux: its review is now available as text chunks", "D is no longer in the catalog", "Et alors ?: title changed", "C is retired: acquired",
			"Vieux is back", "B: paid → freemium", "B: pricing changed", "Plume: 20 €/mois → 15 €/mois", "Plume: price changed",
			"The catalog was published with 4 tools, 1 comparison and 2 retired tools",
		}, "\n"))
		some := get(h, "changes.atom?tools=plume,d,plume")
		expect(t, "changes of two tools", titles(valid(t, some)), []string{"D is no longer in the catalog", "Plume: 20 €/mois → 15 €/mois", "Plume: price changed"})
		check.Contains(t, some.Body.String(), `/feeds/changes.atom?tools=d,plume"`, "want a link to itself")
		many := ""
		for i := range 51 {
			many += fmt.Sprintf(",t%d", i)
		}
		for _, tools := range []string{"plume,", "Plume", many[1:]} {
			got := get(h, "prices.atom?tools="+tools)
			check.Equal(t, got.Code, 400, "%s: %s", tools, got.Body)
		}
		prices := valid(t, get(h, "prices.atom"))
		expect(t, "prices", titles(prices), []string{"B: paid → freemium", "Plume: 20 €/mois → 15 €/mois"})
		expect(t, "content", prices.Entries[1].Content, "price: 20 €/mois → 15 €/mois\nSince 2026-11-02")
		retired := valid(t, get(h, "cimetiere.atom"))
		expect(t, "retired", titles(retired), []string{"C is retired: acquired", "The catalog was published with 4 tools, 1 comparison and 2 retired tools"})
		expect(t, "links", links(changes), []string{"/tools/old", "/tools/d?as_of=1", "/comparisons/duel", "/graveyard/c", "/tools/old", "/tools/b", "/tools/b", "/tools/plume", "/tools/plume", "/editions/1"})

		expect(t, "feed", []string{changes.ID, changes.Title, changes.Author.Name, changes.Rights}, []string{"tag:api.palmares.example,2026:feeds/changes.atom", "palmarès <&>: What changed", "palmarès <&>", "Source : palmarès & Cie"})
		// Feed readers recognize entries by their IDs, which are those of the events.
		events := s.Read.JournalEntry.Query().Where(journalentry.EventNotNil()).Order(journalentry.ByID()).AllX(t.Context())
		slices.Reverse(events)
		first := slices.IndexFunc(events, func(e *ent.JournalEntry) bool { return e.ReleaseNumber == 1 })
		var ids, want []string
		for _, event := range events[1 : first+1] { // after the publication of the second release, up to that of the first
			want = append(want, fmt.Sprintf("tag:api.palmares.example,2026:evt_%d", event.ID))
		}
		for _, e := range changes.Entries {
			ids = append(ids, e.ID)
		}
		expect(t, "ids", ids, want)
		expect(t, "updated", changes.Updated, changes.Entries[0].Updated)
		expect(t, "Cache-Control", got.Header().Get("Cache-Control"), "s-maxage=3600, stale-while-revalidate=86400")
		modified, err := http.ParseTime(got.Header().Get("Last-Modified"))
		check.OK(t, err, "Last-Modified: %v", modified)
		check.Equal(t, modified.Format(time.RFC3339), strings.Replace(changes.Updated, "+00:00", "Z", 1), "Last-Modified: %v", modified)
	})
}

// Entries about categories, retired tools and reviews say what changed. Earlier price
// changes that a feed adds are not news.
func TestFeedOfEveryKindOfUpdate(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		gone := &record.Retired{Slug: "gone", Name: "Parti", Category: "code", Reason: "mort", RetiredAt: "2026-06-01", Note: "Fermé."}
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", aTool("a", "A"), gone))
		noted := *gone
		noted.Note = "Vendu."
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", &record.Category{Slug: "extra", Label: "Extra"}, &noted, aTool("a", "A", func(t *record.Tool) {
			t.Sections[0].Text, t.Mainstream = "Mieux.", true
			t.PriceHistory = []record.PriceChange{{ChangedAt: "2025-01-01", Pricing: "payant", Price: "20 €/mois", PreviousPricing: "payant", PreviousPrice: "9 €/mois"}}
		})))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-03", &record.Category{Slug: "extra", Label: "Autre"}, &noted, aTool("a", "A", func(t *record.Tool) { t.Mainstream = true })))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-04", &noted, aTool("a", "A", func(t *record.Tool) { t.Mainstream = true })))
		changes := valid(t, get(newHandler(s), "changes.atom"))
		translated := &record.Category{Slug: "code", Label: "Code"}
		translated.Translations.En.Label = "Source code"
		feedtest.Publish(t, s, feedtest.Of("2026-11-05", translated, &record.Category{Slug: "voix", Label: "Voix"}, &noted, aTool("a", "A", func(t *record.Tool) {
			t.Mainstream, t.Translations.En.Tagline = true, "A tool."
		})))
		latest := valid(t, get(newHandler(s), "changes.atom"))
		expect(t, "titles of translations", titles(latest)[:2], []string{"A: translations changed", "The category Code was updated"})
		expect(t, "content of translations", latest.Entries[0].Content, "A: translations changed")
		expect(t, "titles", strings.Join(titles(changes)[:6], "\n"), strings.Join([]string{
			"The category Autre was removed", "A: review text changed", "Extra is now called Autre",
			"A: widely used, review text changed", "Parti: note changed", "New category: Extra",
		}, "\n"))
		expect(t, "links", links(changes)[:6], []string{
			"/categories/extra?as_of=3", "/tools/a", "/categories/extra?as_of=3", "/tools/a", "/graveyard/gone", "/categories/extra?as_of=2",
		})
		expect(t, "content", changes.Entries[3].Content, "widely used: false → true")
		expect(t, "entries", len(changes.Entries), 7)
	})
}

// Each tool and category has a feed in both languages, also after it was retired or
// removed.
func TestFeedsOfItems(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		h := newHandler(s)
		score := func(t *record.Tool) { value := 8.25; t.Score, t.UpdatedAt = &value, "2026-11-02" }
		duel := &record.Comparison{Slug: "plume", Title: "Lequel ?", ToolA: "plume", ToolB: "b", Winner: "b", WinnerNote: "Net.", Published: true, UpdatedAt: "2026-10-01", CanonicalURL: "https://palmares.example/duel"}
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", aTool("plume", "Plume"), aTool("b", "B"), aTool("c", "C")))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", aTool("plume", "Plume", at("15 €/mois")), aTool("b", "B", score), aTool("c", "C", at("9 €/mois")), duel))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-03", aTool("plume", "Plume", at("15 €/mois")), aTool("b", "B", score), duel,
			&record.Retired{Slug: "c", Name: "C", Category: "code", Reason: "acquis", RetiredAt: "2026-11-02", Note: "Acheté."}))

		english := valid(t, get(h, "/en/tools/plume/changes.atom"))
		expect(t, "English", titles(english), []string{"Plume: 20 €/mois → 15 €/mois", "New tool: Plume"}) // not the comparison with its slug
		expect(t, "title", english.Title, "palmarès <&>: Changes to Plume")
		expect(t, "links", []string{english.Links[0].Href, english.Links[1].Href}, []string{"https://api.palmares.example:8443/en/tools/plume/changes.atom", "https://api.palmares.example:8443/en/tools/plume"})
		french := valid(t, get(h, "/fr/tools/b/changes.atom"))
		expect(t, "French", titles(french), []string{"B\u00a0: mise à jour (note)", "Nouvel outil\u00a0: B"})
		expect(t, "content", french.Entries[0].Content, "note\u00a0: 7,5 → 8,25")
		expect(t, "French links", french.Entries[0].Links[0].Href, "https://api.palmares.example:8443/fr/tools/b")
		retired := valid(t, get(h, "/fr/tools/c/changes.atom"))
		expect(t, "retired", titles(retired), []string{"C a disparu\u00a0: racheté", "C\u00a0: 20 €/mois → 9 €/mois", "Nouvel outil\u00a0: C"})
		category := valid(t, get(h, "/en/categories/code/changes.atom"))
		expect(t, "category", titles(category), []string{"C is retired: acquired", "New comparison: Lequel ?", "C: 20 €/mois → 9 €/mois", "B: score changed", "Plume: 20 €/mois → 15 €/mois"})
		expect(t, "quiet category", len(valid(t, get(h, "/en/categories/voix/changes.atom")).Entries), 0)

		tag := get(h, "/en/tools/plume/changes.atom").Header().Get("ETag")
		expect(t, "unchanged", get(h, "/en/tools/plume/changes.atom", "If-None-Match", tag).Code, 304)
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-04", aTool("plume", "Plume", at("15 €/mois")), aTool("b", "B", score)))
		expect(t, "still unchanged", get(h, "/en/tools/plume/changes.atom", "If-None-Match", tag).Code, 304)
		removed := valid(t, get(h, "/en/tools/c/changes.atom"))
		expect(t, "removed", titles(removed)[0], "C is no longer in the catalog")
		expect(t, "links of a removed tool", links(removed), []string{"/tools/c?as_of=3", "/graveyard/c?as_of=3", "/tools/c?as_of=2", "/tools/c?as_of=1"})
		expect(t, "price of a removed tool", titles(valid(t, get(h, "prices.atom")))[0], "C: 20 €/mois → 9 €/mois")

		for path, want := range map[string]string{
			"/en/tools/plum/changes.atom": "Did you mean “plume”?", "/fr/categories/coed/changes.atom": "Did you mean “code”?", "/en/tools/zzz/changes.atom": "There is no tool “zzz”.", "/en/tools/A%20B/changes.atom": "is not a slug",
		} {
			got := get(h, path)
			check.True(t, got.Code == 404 && strings.Contains(got.Body.String(), want), "%s: got %d %s, want 404 and %s", path, got.Code, got.Body, want)
		}
	})
}

func TestFeedsOverHTTP(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		h := newHandler(s)
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", aTool("a", "A")))
		first := get(h, "changes.atom")
		tag := first.Header().Get("ETag")
		check.True(t, strings.HasPrefix(tag, `"`), "ETag: got %s, want a quoted one", tag)
		again := get(h, "changes.atom", "If-None-Match", tag)
		expect(t, "unchanged", []int{again.Code, again.Body.Len()}, []int{304, 0})
		head := serve(h, http.MethodHead, "changes.atom")
		expect(t, "HEAD", []any{head.Code, head.Body.Len(), head.Header().Get("ETag")}, []any{200, 0, tag})
		expect(t, "POST", []any{serve(h, http.MethodPost, "changes.atom").Code, serve(h, http.MethodPost, "changes.atom").Header().Get("Allow")}, []any{405, "GET, HEAD"})
		for _, name := range []string{"", "nothing.atom", "changes.atom/", "../feeds/x"} {
			got := get(h, name)
			check.Equal(t, got.Code, 404, "%s: %s", name, got.Body)
			check.Contains(t, got.Body.String(), `"error"`, name)
		}
		prices := get(h, "prices.atom").Header().Get("ETag")
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", aTool("a", "Autre")))
		changed := get(h, "changes.atom", "If-None-Match", tag)
		expect(t, "after a new release", changed.Code, 200)
		expect(t, "feed without changes", get(h, "prices.atom", "If-None-Match", prices).Code, 304)

		// If the database is lost, cached feeds are still served and others are 503.
		fresh := newHandler(s)
		check.Try(s.Write.ExecContext(t.Context(), "ALTER TABLE releases RENAME TO elsewhere")).OK(t)
		expect(t, "cached feed", get(h, "changes.atom").Header().Get("ETag"), changed.Header().Get("ETag"))
		lost := get(fresh, "changes.atom")
		check.Equal(t, lost.Code, 503, lost.Body)
		check.Lacks(t, lost.Body.String(), "releases")
		check.True(t, lost.Header().Get("Retry-After") != "", "got %d %s, want 503 and Retry-After", lost.Code, lost.Body)
	})
}

func TestHostileTexts(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		h := newHandler(s)
		tool := aTool("a", hostile, func(t *record.Tool) { t.Tagline = hostile })
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", tool, aTool("b", "B"),
			&record.Comparison{Slug: "duel", Title: hostile, ToolA: "a", ToolB: "b", Winner: "a", WinnerNote: hostile, Published: true, UpdatedAt: "2026-10-01", CanonicalURL: "https://palmares.example/duel"}))
		dearer := *tool
		dearer.Price, dearer.UpdatedAt = "99 €/mois", "2026-11-02"
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", &dearer, &record.Retired{Slug: "b", Name: hostile, Category: "code", Reason: "pivot", RetiredAt: "2026-11-02", Note: hostile}))
		for _, name := range []string{"changes.atom", "prices.atom", "cimetiere.atom"} {
			got := get(h, name)
			check.Lacks(t, got.Body.String(), "<script", name)
			check.Lacks(t, got.Body.String(), "<![CDATA[", name)
			f := valid(t, got)
			if len(f.Entries) == 0 || !slices.ContainsFunc(titles(f), func(title string) bool {
				return strings.Contains(title, `<script>alert(1)</script> ]]> <![CDATA[ &amp; &#0;`) && strings.Contains(title, "é 😀")
			}) {
				t.Errorf("%s: got titles %q, want the hostile text", name, titles(f))
			}
		}
	})
}

// A feed has the newest hundred events, and the first release as one of them while there is
// room. An earlier release that does not fit has a summary, and an archive.
func TestLongFeeds(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		h := newHandler(s)
		catalog := func(tools int, change ...func(*record.Tool)) (all []any) {
			for i := range tools {
				all = append(all, aTool(fmt.Sprintf("t%03d", i), fmt.Sprintf("T%03d", i), change...))
			}
			return all
		}
		const published = "The catalog was published with 130 tools, 0 comparisons and 0 retired tools"
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", catalog(130)...))
		f := valid(t, get(h, "changes.atom"))
		expect(t, "first release", titles(f), []string{published})
		id := f.Entries[0].ID
		expect(t, "feed without events of the first release", len(valid(t, get(h, "cimetiere.atom")).Entries), 0)

		feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", catalog(229)...))
		f = valid(t, get(h, "changes.atom"))
		expect(t, "with room", []any{len(f.Entries), f.Entries[0].Title, f.Entries[98].Title, f.Entries[99].Title, f.Entries[99].ID}, []any{100, "New tool: T228", "New tool: T130", published, id})
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-03", catalog(230)...))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-04", catalog(231)...))
		f = valid(t, get(h, "changes.atom"))
		summary := "Edition 2 has more changes than fit in this feed"
		expect(t, "newest", []any{len(f.Entries), f.Entries[0].Title, f.Entries[1].Title, f.Entries[98].Title, f.Entries[99].Title}, []any{100, "New tool: T230", "New tool: T229", "New tool: T132", summary})
		check.Equal(t, f.Entries[99].Content, "New tools: 99")
		check.Equal(t, links(f)[99], "/editions/2")

		feedtest.Publish(t, s, feedtest.Catalog("2026-11-05", append(catalog(230, at("30 €/mois")),
			&record.Retired{Slug: "t230", Name: "T230", Category: "code", Reason: "mort", RetiredAt: "2026-11-05", Note: "Fermé."})...))
		f = valid(t, get(h, "changes.atom"))
		expect(t, "prices and retirements first", []any{len(f.Entries), f.Entries[0].Title, f.Entries[99].Content}, []any{100, "T230 is retired: shut down", "Updated tools: 230\nRetired tools: 1\nPrice changes: 230"})
		var archives []int
		for f.link("prev-archive") != "" {
			address := strings.TrimPrefix(f.link("prev-archive"), "https://api.palmares.example:8443")
			got := get(h, address)
			f = valid(t, got)
			archives = append(archives, len(f.Entries))
			check.Equal(t, f.link("current"), "https://api.palmares.example:8443/feeds/changes.atom")
			check.Contains(t, got.Body.String(), "<fh:archive></fh:archive>")
		}
		expect(t, "archives", archives, []int{100, 100})
		expect(t, "end of the archives", titles(f)[99], published)

		f = valid(t, get(h, "/fr/tools/t000/changes.atom?until=4"))
		expect(t, "archive of a tool", titles(f), []string{"Nouvel outil\u00a0: T000"})
		check.Equal(t, get(h, "changes.atom?until=6").Code, 404)
		check.Equal(t, get(h, "changes.atom?until=x").Code, 400)
	})
}

// A feed with long events has fewer entries.
func TestFeedsOfLongTexts(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		var tools []any
		for i := range 20 {
			tools = append(tools, aTool(fmt.Sprintf("t%02d", i), fmt.Sprintf("T%02d", i), func(t *record.Tool) { t.Tagline = strings.Repeat("a", 300_000) }))
		}
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01"))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", tools...))
		got := get(newHandler(s), "changes.atom")
		size := got.Body.Len()
		want := []string{"New tool: T19", "New tool: T18", "New tool: T17", "New tool: T16", "New tool: T15", "New tool: T14", "Edition 2 has more changes than fit in this feed"}
		expect(t, "newest", titles(valid(t, got)), want)
		check.True(t, size <= 2<<20, "size: got %d, want at most 2 MiB", size)
	})
}

// Every page links to every feed.
func TestPagesLinkToTheFeeds(t *testing.T) {
	pages := page.NewTemplates(fstest.MapFS{"pages/any.html": {Data: []byte(`{{define "main"}}{{end}}`)}}, "pages", nil)
	html := check.Try(pages.Render("any", page.Content{Service: "palmarès"})).OK(t)
	h := newHandler(testkit.Open(t, testkit.SQLite(t)))
	var linked []string
	for _, link := range regexp.MustCompile(`<link rel="alternate" type="application/atom\+xml" title="[^"]+" href="/feeds/([^"]+)">`).FindAllSubmatch(html, -1) {
		linked = append(linked, string(link[1]))
		valid(t, get(h, string(link[1])))
	}
	expect(t, "links", linked, []string{"changes.atom", "prices.atom", "cimetiere.atom"})
}
