package site

import (
	"cmp"
	"context"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/pricing"
	"palmares/internal/catalog/record"
	"palmares/internal/core/lang"
	"palmares/internal/core/text"
	"palmares/internal/web/page"
	"palmares/internal/web/words"
)

// event is a change of the catalog, as the API returns it.
type event struct {
	Release                           int
	Type, Slug, Category, PublishedAt string
	Fields                            []string
	Before, After                     map[string]any
	Tool                              struct{ Name string }
}

// eventList is a page of events, with the cursor of the next one.
type eventList struct {
	Nodes    []event
	PageInfo cursorInfo
}

type cursorInfo struct {
	HasNextPage, HasPreviousPage bool
	EndCursor                    string
}

// subject returns what changed: a comparison, a category or, for all other events, a
// tool. Each has its own slugs.
func (e *event) subject() string {
	if noun, _, _ := strings.Cut(e.Type, "_"); noun == comparisonEvents || noun == categoryEvents {
		return noun
	}
	return "tool"
}

const (
	comparisonEvents = "comparatif"
	categoryEvents   = "category"
)

// name returns the name, title or label of what changed, or "" if neither the event
// nor the current catalog has one.
func (e *event) name() string {
	name := e.Tool.Name
	for _, field := range []string{"label", "title", "name"} {
		name = cmp.Or(textIn(e.After, field), textIn(e.Before, field), name)
	}
	return strings.TrimSpace(name)
}

// translation returns the title or label in a language, or "" if the event has none.
func (e *event) translation(l lang.Language) (text string) {
	for _, state := range []map[string]any{e.After, e.Before} {
		all, _ := state["translations"].(map[string]any)
		texts, _ := all[string(l)].(map[string]any)
		text = cmp.Or(text, textIn(texts, "title"), textIn(texts, "label"))
	}
	return text
}

func textIn(object map[string]any, field string) string {
	value, _ := object[field].(string)
	return value
}

// path returns the path of the page of what changed, in the releases that have it.
func (e *event) path() string {
	switch {
	case e.subject() == comparisonEvents:
		return "/comparatifs/" + e.Slug
	case e.subject() == categoryEvents:
		return "/categories/" + e.Slug
	case e.Type == toolRetired, e.Type == retiredUpdated:
		return "/cimetiere/" + e.Slug
	}
	return "/tools/" + e.Slug
}

const (
	catalogPublished = "catalog_published"
	priceChanged     = "price_changed"
	toolUpdated      = "tool_updated"
)

// eventKinds are the types of changes that a page can be limited to, most important
// first.
var eventKinds = []string{
	toolCreated, toolRetired, priceChanged, toolUpdated, "tool_removed", "comparatif_published", "comparatif_updated", "comparatif_removed",
	"category_created", "category_updated", "category_removed", retiredUpdated, "embeddings_changed", "price_backfilled",
}

// titleOf returns the name of a type of changes.
func titleOf(kind string) lang.Message { return journal.Titles[strings.Replace(kind, "_", ".", 1)] }

type changesView struct {
	Feed       feedInfo
	Changes    eventList
	Oldest     struct{ Nodes []release }
	Categories []category
	Choices    []choice         `json:"-"`
	Releases   []releaseChanges `json:"-"`
	First      *release         `json:"-"` // the first release, if the page shows it
	ToolName   string           `json:"-"` // of the tool that the page is limited to
	Feeds      []page.Feed      `json:"-"` // feeds of what the page is limited to
	Older      string           `json:"-"` // URL of the next page, or ""
	catalog    eventCatalog
}

// choice is an option of a filter.
type choice struct{ Value, Name string }

// releaseChanges are the changes of one release on a page.
type releaseChanges struct {
	release
	Totals *releaseTotals // nil if the page does not have the event about the release
	Groups []changeGroup
}

type releaseTotals struct{ Tools, Retired, Comparisons int }

// changeGroup has the changes of one kind in a release, one line for each.
type changeGroup struct {
	Name  string
	Lines []changeLine
	More  string // URL of the page with all of them, or "" if these are all
	kind  int
}

// changeLine is one change.
type changeLine struct {
	Name, URL string            // URL is "" if no release that can be read has its page
	Lang      template.HTMLAttr // language of Name if it is not the page's
	Category  string            // label, if it matters
	Changes   []fieldChange     // short values; those that the title of the group names have no field
	Direction string            // how a price changed, or ""
	Percent   string            // how much a price changed
	Others    []string          // names of further fields that changed, for the middle of a sentence
	slug      string
}

const (
	returned     = "returned"
	scoreChanged = "score_changed"

	maxGroup = 10 // lines, on a page with all kinds
)

// changeGroup kinds in the order in which a release lists them: the types of events,
// and after some of them a special case, which has a name of its own.
var changeGroups = func() (all []groupKind) {
	for _, kind := range eventKinds {
		switch kind {
		case toolUpdated:
			all = append(all, groupKind{scoreChanged, toolUpdated, "Score changes"}, groupKind{toolUpdated, toolUpdated, "Other updates"})
		case toolRetired:
			all = append(all, groupKind{kind, kind, titleOf(kind)}, groupKind{returned, toolCreated, "Back in the catalog"})
		default:
			all = append(all, groupKind{kind, kind, titleOf(kind)})
		}
	}
	return all
}()

// groupKind is a kind of changes, with the type of their events.
type groupKind struct {
	kind, events string
	name         lang.Message
}

// kind returns the group of an event.
func (e *event) kind() string {
	switch {
	case e.Type == toolCreated && e.Before != nil:
		return returned
	case e.Type == toolUpdated && slices.Contains(e.Fields, "score"):
		return scoreChanged
	}
	return e.Type
}

func (v *changesView) load(ctx context.Context, s *Site, r *request) error {
	if r.Param("tool") != "" { // comparisons and categories may have the same slug
		v.Changes.Nodes = slices.DeleteFunc(v.Changes.Nodes, func(e event) bool { return e.subject() != "tool" })
	}
	return v.catalog.load(ctx, s, r, v.Changes.Nodes)
}

func (v *changesView) prepare(r *request) error {
	for _, kind := range append(slices.Clone(eventKinds), catalogPublished) {
		v.Choices = append(v.Choices, choice{kind, r.lang.Text(titleOf(kind))})
	}
	for i := range v.Changes.Nodes {
		e := &v.Changes.Nodes[i]
		if len(v.Releases) == 0 || v.Releases[len(v.Releases)-1].Number != e.Release {
			v.Releases = append(v.Releases, releaseChanges{release: v.catalog.release(e)})
		}
		v.add(r, &v.Releases[len(v.Releases)-1], e)
	}
	for i := range v.Releases {
		v.Releases[i].arrange(r)
	}
	if v.Changes.PageInfo.HasNextPage {
		v.Older = r.With("after", v.Changes.PageInfo.EndCursor)
	}
	filtered := r.Param("type") != "" || r.Param("category") != "" || r.Param("tool") != "" || r.Param("release") != ""
	if nodes := v.Oldest.Nodes; !filtered && v.Older == "" && len(nodes) > 0 && nodes[0].Number == 1 {
		v.First = &nodes[0]
	}
	if slug := r.Param("tool"); slug != "" {
		v.ToolName = v.catalog.toolName(slug, 0)
		v.Feeds = append(v.Feeds, toolFeed(r, slug, v.ToolName))
	}
	if slug := r.Param("category"); isCategory(v.Categories, slug) {
		v.Feeds = append(v.Feeds, categoryFeed(r, slug, labelOf(v.Categories, slug)))
	}
	return nil
}

func (v *changesView) feeds(*request) []page.Feed { return v.Feeds }

// add adds an event to the changes of its release.
func (v *changesView) add(r *request, c *releaseChanges, e *event) {
	if e.Type == catalogPublished {
		number := func(field string) int { n, _ := e.After[field].(float64); return int(n) }
		c.Totals = &releaseTotals{number("tools_total"), number("tools_retired"), number("comparatifs_total")}
		return
	}
	fields := e.shownFields()
	if e.Type == toolUpdated && slices.ContainsFunc(v.Changes.Nodes, func(other event) bool {
		return other.Type == priceChanged && other.Slug == e.Slug && other.Release == e.Release
	}) { // a new price is a line of its own
		fields = slices.DeleteFunc(fields, func(field string) bool { return field == "price" || field == "pricing" })
		if len(fields) == 0 {
			return
		}
	}
	kind, l := e.kind(), r.lang
	line := changeLine{Name: v.catalog.name(e), URL: v.catalog.link(r, e), slug: e.Slug}
	if e.subject() != "tool" { // titles and labels are text, names are not
		if line.Lang = catalogLang(l); line.Lang != "" && e.translation(l) != "" {
			line.Name, line.Lang = e.translation(l), ""
		}
		line.Name = lang.Typeset(line.Name)
	}
	if kind == toolCreated || kind == toolRetired || kind == returned {
		line.Category = labelOf(v.Categories, e.Category)
	}
	state := version{Type: e.Type, Fields: fields, Before: e.Before, After: e.After}
	for _, change := range state.changesOf(l, fields, v.Categories) {
		switch {
		case !isShort(change.name):
			line.Others = append(line.Others, text.LowerFirst(change.Field))
			continue
		case kind == scoreChanged && change.name == "score", slices.Contains([]string{"price", "pricing", "reason", "retired_at", "label"}, change.name):
			change.Field = "" // the value says it
		}
		line.Changes = append(line.Changes, change)
	}
	if kind == priceChanged {
		direction, percent := pricing.Compare(pricing.Read(textIn(e.Before, "price")), pricing.Read(textIn(e.After, "price")))
		if line.Direction = direction; percent != nil && *percent != 0 {
			line.Percent = l.Percent(*percent)
		}
	}
	c.insert(l, kind, line)
}

// isShort reports whether the values of a field fit in a line.
func isShort(field string) bool {
	f, known := record.FieldNamed(field)
	return known && f.Kind != record.Nested && f.Kind != record.Text && !strings.HasSuffix(field, "_slug") || slices.Contains([]string{"name", "label", "winner"}, field)
}

// shownFields returns the fields that a line about an event shows.
func (e *event) shownFields() []string {
	switch e.Type {
	case toolCreated:
		return []string{"price", "score"}
	case toolRetired:
		return []string{"reason", "retired_at"}
	case priceChanged, "price_backfilled":
		return []string{"price", "pricing"}
	case "comparatif_published":
		return []string{"winner"}
	case toolUpdated, retiredUpdated, "comparatif_updated", "category_updated":
		// The date changes with every update, and the slug of the winner with its name.
		if fields := slices.DeleteFunc(slices.Clone(e.Fields), func(field string) bool { return field == "updated_at" || field == "winner_slug" }); len(fields) > 0 {
			return fields
		}
		return e.Fields
	}
	return nil
}

func (c *releaseChanges) insert(l lang.Language, kind string, line changeLine) {
	for rank, group := range changeGroups {
		if group.kind != kind {
			continue
		}
		i := slices.IndexFunc(c.Groups, func(g changeGroup) bool { return g.kind == rank })
		if i < 0 {
			i, c.Groups = len(c.Groups), append(c.Groups, changeGroup{Name: l.Text(group.name), kind: rank})
		}
		c.Groups[i].Lines = append(c.Groups[i].Lines, line)
	}
}

// arrange sorts the groups and their lines, and shortens long groups on a page with
// all kinds.
func (c *releaseChanges) arrange(r *request) {
	slices.SortFunc(c.Groups, func(a, b changeGroup) int { return cmp.Compare(a.kind, b.kind) })
	for i := range c.Groups {
		g := &c.Groups[i]
		slices.SortStableFunc(g.Lines, func(a, b changeLine) int {
			return cmp.Or(strings.Compare(text.Fold(a.Name), text.Fold(b.Name)), strings.Compare(a.slug, b.slug))
		})
		if len(g.Lines) > maxGroup && r.Param("type") == "" {
			query := maps.Clone(r.query)
			query.Del("after")
			query.Set("type", changeGroups[g.kind].events)
			query.Set("release", strconv.Itoa(c.Number))
			g.Lines, g.More = g.Lines[:maxGroup], page.WithQuery(r.path, query.Encode())
		}
	}
}

func labelOf(categories []category, slug string) string {
	if i := slices.IndexFunc(categories, func(c category) bool { return c.Slug == slug }); i >= 0 {
		return categories[i].Label
	}
	return sentence(slug) // the category no longer exists
}

// sentence turns a slug or the name of a field into words.
func sentence(name string) string { return words.Sentence(name) }

// dayOf returns the day of a time.
func dayOf(at string) string { return at[:min(len(at), len(time.DateOnly))] }
