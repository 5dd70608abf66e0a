package site

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"palmares/graph"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/pricing"
	"palmares/internal/catalog/record"
	catalog "palmares/internal/catalog/release"
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
	case e.Type == toolRetired, e.Type == retiredUpdated, e.kind() == graveRemoved:
		return "/cimetiere/" + e.Slug
	}
	return "/tools/" + e.Slug
}

const (
	catalogPublished = "catalog_published"
	priceChanged     = "price_changed"
	toolUpdated      = "tool_updated"
	toolRemoved      = "tool_removed"
)

// eventKinds are the types of changes that a page can be limited to, most important
// first.
var eventKinds = []string{
	priceChanged, toolUpdated, toolCreated, toolRetired, toolRemoved, "comparatif_published", "comparatif_updated", "comparatif_removed",
	"category_created", "category_updated", "category_removed", retiredUpdated, "embeddings_changed", "price_backfilled",
}

// titleOf returns the name of a type of changes.
func titleOf(kind string) lang.Message { return journal.Titles[strings.Replace(kind, "_", ".", 1)] }

// editionEvents are the events of one edition on a page, by kind, one line each.
type editionEvents struct {
	release
	Totals *releaseTotals // nil if the page does not have the event about the edition
	Groups []changeGroup
}

type releaseTotals struct{ Tools, Retired, Comparisons int }

// changeGroup has the changes of one kind in an edition, one line for each.
type changeGroup struct {
	Name  string
	Lines []changeLine
	Total int    // of all lines
	More  string // URL of the page with all of them, or "" if these are all
	kind  int
}

// changeLine is one change.
type changeLine struct {
	Name, URL string            // URL is "" if no release that can be read has its page
	Lang      template.HTMLAttr // language of Name if it is not the page's
	Category  *category         // if it matters
	Changes   []fieldChange     // short values, what the group is about first; those that its title names have no field
	Mark      string            // what matters most, such as when the tool closes, or ""
	IsGone    bool              // it is no longer in the catalog, which the event is not about
	Bar       template.HTML     // how large the change is, among those of the group
	Note      string            // why a tool was retired, in French
	Others    []string          // names of further fields that changed, for the middle of a sentence
	slug      string
}

// change returns what the group is about, such as the new price.
func (l *changeLine) change() (c delta) {
	if len(l.Changes) > 0 {
		c = l.Changes[0].delta
	}
	return c
}

const (
	returned     = "returned"
	scoreChanged = "score_changed"
	graveRemoved = "grave_removed"

	maxGroup = 10 // lines, on a page with all kinds
)

// changeGroups are the kinds in the order in which an edition lists them: prices and scores
// first.
var changeGroups = func() []groupKind {
	all := []groupKind{
		{priceChanged, priceChanged, titleOf(priceChanged)}, {scoreChanged, toolUpdated, "Score changes"},
		{toolCreated, toolCreated, titleOf(toolCreated)}, {returned, toolCreated, "Back in the catalog"}, {toolRetired, toolRetired, titleOf(toolRetired)},
		{toolRemoved, toolRemoved, titleOf(toolRemoved)}, {graveRemoved, toolRemoved, "Removed from the graveyard"}, {toolUpdated, toolUpdated, "Other updates"},
	}
	for _, kind := range eventKinds[slices.Index(eventKinds, toolRemoved)+1:] {
		all = append(all, groupKind{kind, kind, titleOf(kind)})
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
	case e.Type == toolRemoved && e.Before["retired_at"] != nil:
		return graveRemoved
	case e.Type == toolUpdated && slices.Contains(e.Fields, "score"):
		return scoreChanged
	}
	return e.Type
}

// byEdition arranges events, which are sorted by edition.
func (s *Site) byEdition(ctx context.Context, r *request, events []event) (editions []editionEvents, err error) {
	if err := s.readFormerTools(ctx, r, events); err != nil {
		return nil, err
	}
	type change struct {
		release int
		slug    string
	}
	priced := map[change]bool{}
	for i := range events {
		if e := &events[i]; e.Type == priceChanged {
			priced[change{e.Release, e.Slug}] = true
		}
	}
	for i := range events {
		e := &events[i]
		if len(editions) == 0 || editions[len(editions)-1].Number != e.Release {
			editions = append(editions, editionEvents{release: r.releaseOf(e)})
		}
		editions[len(editions)-1].add(r, e, e.Type == toolUpdated && priced[change{e.Release, e.Slug}])
	}
	for i := range editions {
		editions[i].arrange(r.lang)
	}
	addBars(editions)
	return editions, nil
}

// add adds an event. A new price has a line of its own.
func (c *editionEvents) add(r *request, e *event, priced bool) {
	if e.Type == catalogPublished {
		number := func(field string) int { n, _ := e.After[field].(float64); return int(n) }
		c.Totals = &releaseTotals{number("tools_total"), number("tools_retired"), number("comparatifs_total")}
		return
	}
	fields := e.shownFields()
	if priced {
		fields = slices.DeleteFunc(fields, func(field string) bool { return field == "price" || field == "pricing" })
		if len(fields) == 0 {
			return
		}
	}
	kind, l := e.kind(), r.lang
	line := changeLine{Name: cmp.Or(e.name(), r.toolName(e.Slug, e.Release)), URL: r.linkTo(e), slug: e.Slug}
	line.IsGone = line.URL != r.Link(e.path()) && !strings.HasSuffix(e.Type, "_removed")
	if e.subject() != "tool" { // titles and labels are text, names are not
		if line.Lang = catalogLang(l); line.Lang != "" && e.translation(l) != "" {
			line.Name, line.Lang = e.translation(l), ""
		}
		line.Name = lang.Typeset(line.Name)
	}
	switch kind {
	case toolCreated, toolRetired, returned, priceChanged, scoreChanged:
		line.Category = new(r.named(e.Category))
	}
	state := version{Type: e.Type, Fields: fields, Before: e.Before, After: e.After}
	for _, change := range state.changesOf(r, fields) {
		switch {
		case change.name == "ends_at" && e.After["ends_at"] != nil:
			line.Mark = l.Text("closes on %s", l.DayOf(textIn(e.After, "ends_at")))
			continue
		case !isShort(change.name):
			line.Others = append(line.Others, text.LowerFirst(change.Field))
			continue
		case kind == scoreChanged && change.name == "score":
			change.Field = ""
			line.Changes = slices.Insert(line.Changes, 0, change)
			continue
		case change.name == "label" && l != lang.French:
			change.Field = l.Text("French name")
		case slices.Contains([]string{"price", "pricing", "reason", "retired_at", "label"}, change.name):
			change.Field = "" // the value says it
		case change.name == "score" && e.After["score"] == nil:
			change.Field, change.After.Text = "", l.Text("not tested yet")
		}
		line.Changes = append(line.Changes, change)
	}
	if kind == toolRetired {
		line.Note = textIn(e.After, "note")
	}
	c.insert(l, kind, line)
}

// delta is how a price or score changed.
type delta struct {
	Direction string // "up" or "down", or "" if the values cannot be compared
	Better    bool   // for users
	Amount    string // by how much, or ""
	Since     string // the day on which a new price took effect, or ""
	size      float64
}

func priceDelta(l lang.Language, before, after, since string) delta {
	direction, percent := pricing.Compare(pricing.Read(before), pricing.Read(after))
	d := delta{Direction: direction, Better: direction == "down", Since: since}
	if percent != nil && *percent != 0 {
		d.Amount, d.size = l.Percent(*percent), math.Abs(*percent)
	}
	return d
}

func scoreDelta(l lang.Language, before, after float64) delta {
	d := newDelta(after > before, signed(l, after-before))
	d.size = math.Abs(after - before)
	return d
}

// newDelta returns the change of a number that is better if it is higher.
func newDelta(higher bool, amount string) delta {
	return delta{Direction: map[bool]string{true: "up", false: "down"}[higher], Better: higher, Amount: amount}
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
		// The date changes with every update, translations with the text, and the slug of the winner with its name.
		implied := []string{"updated_at", "translations", "winner_slug"}
		if fields := slices.DeleteFunc(slices.Clone(e.Fields), func(field string) bool { return slices.Contains(implied, field) }); len(fields) > 0 {
			return fields
		}
		return e.Fields
	}
	return nil
}

func (c *editionEvents) insert(l lang.Language, kind string, line changeLine) {
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

// arrange sorts the groups and their lines, the largest changes first, then by name, and adds
// what follows from their order.
func (c *editionEvents) arrange(l lang.Language) {
	slices.SortFunc(c.Groups, func(a, b changeGroup) int { return cmp.Compare(a.kind, b.kind) })
	for i := range c.Groups {
		g := &c.Groups[i]
		g.Total = len(g.Lines)
		slices.SortStableFunc(g.Lines, func(a, b changeLine) int {
			return cmp.Or(cmp.Compare(b.change().size, a.change().size), strings.Compare(text.Fold(a.Name), text.Fold(b.Name)), strings.Compare(a.slug, b.slug))
		})
	}
	c.Headline = c.headline(l)
}

// addBars shows how large each change is among those of its kind.
func addBars(editions []editionEvents) {
	largest := map[int]float64{}
	each := func(do func(*changeLine, int)) {
		for _, e := range editions {
			for _, g := range e.Groups {
				for i := range g.Lines {
					do(&g.Lines[i], g.kind)
				}
			}
		}
	}
	each(func(line *changeLine, kind int) { largest[kind] = max(largest[kind], line.change().size) })
	each(func(line *changeLine, kind int) {
		if change := line.change(); change.size > 0 {
			line.Bar = changeBar(change, largest[kind])
		}
	})
}

// maxNamedInHeadline is how many tools with the same change a headline names; more have no
// sentence.
const maxNamedInHeadline = 3

// mostChanged names the tools whose scores have risen or fallen most.
var mostChanged = map[string]lang.Message{
	"up":   "%[2]s gains the most: %[3]s.|%[2]s gain the most: %[3]s.",
	"down": "%[2]s loses the most: %[3]s.|%[2]s lose the most: %[3]s.",
}

func (c *editionEvents) headline(l lang.Language) string {
	var sentences []string
	for _, most := range []struct {
		kind, direction string
		message         lang.Message
	}{
		{scoreChanged, "up", mostChanged["up"]},
		{scoreChanged, "down", mostChanged["down"]},
		{priceChanged, "down", "Largest price decrease: %[2]s, %[3]s.|Largest price decreases: %[2]s, %[3]s."},
		{priceChanged, "up", "Largest price increase: %[2]s, %[3]s.|Largest price increases: %[2]s, %[3]s."},
	} {
		amount, names := "", []string(nil)
		for _, line := range c.lines(most.kind) {
			if d := line.change(); d.Direction == most.direction && d.Amount != "" && (amount == "" || d.Amount == amount) {
				amount, names = d.Amount, append(names, line.Name)
			}
		}
		if len(names) > 0 && len(names) <= maxNamedInHeadline {
			sentences = append(sentences, l.Plural(len(names), most.message, l.List(names), amount))
		}
	}
	var closing []string
	for _, g := range c.Groups {
		for _, line := range g.Lines {
			if line.Mark != "" {
				closing = append(closing, line.Name+" "+line.Mark+".")
			}
		}
	}
	if len(closing) <= maxNamedInHeadline {
		sentences = append(sentences, closing...)
	}
	return lang.Typeset(strings.Join(sentences, " "))
}

// lines returns the changes of a kind.
func (c *editionEvents) lines(kind string) []changeLine {
	for _, g := range c.Groups {
		if changeGroups[g.kind].kind == kind {
			return g.Lines
		}
	}
	return nil
}

// shorten shortens long groups, with links to all of their changes.
func (c *editionEvents) shorten(r *request) {
	for i := range c.Groups {
		if g := &c.Groups[i]; len(g.Lines) > maxGroup {
			query := r.asOfQuery()
			for _, name := range []string{"category", "tool"} {
				if value := r.Param(name); value != "" {
					query.Set(name, value)
				}
			}
			query.Set("type", changeGroups[g.kind].events)
			query.Set("release", strconv.Itoa(c.Number))
			g.Lines, g.More = g.Lines[:maxGroup], page.WithQuery(changesPath, query.Encode())
		}
	}
}

// named returns a category with its label. One that has never existed is named after its slug.
func (r *request) named(slug string) category {
	found := r.shown.Category(slug)
	if found == nil {
		found = r.shown.FormerCategory(slug)
	}
	switch {
	case found == nil:
		label := words.Sentence(slug)
		return category{Slug: slug, Label: label, FrenchLabel: label}
	case r.lang == lang.English && found.Translations.En.Label != "":
		return category{Slug: slug, Label: found.Translations.En.Label}
	}
	return category{Slug: slug, Label: found.Label, FrenchLabel: found.Label}
}

// dayOf returns the day of a time.
func dayOf(at string) string { return at[:min(len(at), len(time.DateOnly))] }

// moreChanges returns the events after a cursor, newest first.
func (s *Site) moreChanges(ctx context.Context, r *request, after string, variables map[string]any) (eventList, error) {
	var more struct{ Changes eventList }
	variables["after"] = after
	err := s.execute(ctx, r.asOf, "moreChanges", variables, &more)
	return more.Changes, err
}

// readFormerTools reads the versions of the tools that events without a name are about, if
// the release does not have them.
func (s *Site) readFormerTools(ctx context.Context, r *request, events []event) (err error) {
	slugs := map[string]bool{}
	if slug := r.Param("tool"); slug != "" {
		slugs[slug] = true
	}
	for i := range events {
		if e := &events[i]; e.subject() == "tool" && e.name() == "" {
			slugs[e.Slug] = true
		}
	}
	r.former = map[string][]version{}
	for slug := range slugs {
		if r.shown.Tool(slug) != nil {
			continue
		}
		var result struct{ ToolVersions struct{ Versions []version } }
		if err := s.execute(ctx, r.asOf, "toolNames", map[string]any{"slug": slug}, &result); err != nil {
			return err
		}
		r.former[slug] = result.ToolVersions.Versions
	}
	return nil
}

// toolName returns the name of a tool. One that has been removed has the name of a
// release, or its last name if the release is 0.
func (r *request) toolName(slug string, release int) string {
	if t := r.shown.Tool(slug); t != nil {
		return t.Name
	}
	for _, v := range r.former[slug] {
		if v.After != nil && (release == 0 || v.FirstRelease <= release) {
			return textIn(v.After, "name")
		}
	}
	return slug
}

// releaseOf returns the release of an event.
func (r *request) releaseOf(e *event) release {
	found := release{Number: e.Release, Date: dayOf(e.PublishedAt), PublishedAt: e.PublishedAt}
	if info := r.shown.Numbered(e.Release); info != nil {
		found.Date = info.FeedDate
	}
	return found
}

// linkTo returns the URL of the page of what changed: the current one or, if it no
// longer exists, that of the release. It is "" if the release cannot be read.
func (r *request) linkTo(e *event) string {
	if pageExists(r.shown, e.path()) {
		return r.Link(e.path())
	}
	number := e.Release
	if strings.HasSuffix(e.Type, "_removed") {
		number--
	}
	if isReadable(r.shown, number) {
		return fmt.Sprintf("%s?%s=%d", e.path(), graph.AsOfName, number)
	}
	return ""
}

func isReadable(shown *catalog.Release, number int) bool {
	return number >= shown.HistoryFrom() && shown.Numbered(number) != nil
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
		return shown.IsComparison(slug)
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

// PublishedLater reports whether the release was published on another day than its
// date, which is that of the feed.
func (r release) PublishedLater() bool { return dayOf(r.PublishedAt) != r.Date }

// PublishedTime returns the time of publication.
func (r release) PublishedTime() time.Time {
	at, _ := time.Parse(time.RFC3339, r.PublishedAt) // the API formats it
	return at
}
