package site

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"palmares/graph"
	"palmares/internal/catalog/pricing"
	"palmares/internal/core/lang"
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

// name returns the name, title or label of what changed.
func (e *event) name() string {
	name := cmp.Or(e.Tool.Name, e.Slug)
	for _, field := range []string{"label", "title", "name"} {
		name = cmp.Or(textIn(e.After, field), textIn(e.Before, field), name)
	}
	return name
}

func textIn(object map[string]any, field string) string {
	value, _ := object[field].(string)
	return value
}

// path returns the path of the page of what changed, or "" if it was removed.
func (e *event) path() string {
	switch {
	case strings.HasSuffix(e.Type, "_removed"):
		return ""
	case e.subject() == comparisonEvents:
		return "/comparatifs/" + e.Slug
	case e.subject() == categoryEvents:
		return "/categories/" + e.Slug
	case e.Type == toolRetired, e.Type == retiredUpdated:
		return "/cimetiere/" + e.Slug
	}
	return "/tools/" + e.Slug
}

const catalogPublished = "catalog_published"

// eventKinds are the types of changes that a page lists, most important first.
var eventKinds = []string{
	toolCreated, toolRetired, "price_changed", "tool_updated", "tool_removed", "comparatif_published", "comparatif_updated", "comparatif_removed",
	"category_created", "category_updated", "category_removed", retiredUpdated, "embeddings_changed", "price_backfilled",
}

// eventNames are what the pages call the types of changes.
var eventNames = map[string]lang.Message{
	toolCreated: "New tool", "tool_updated": "Updated", toolRetired: "Retired", "tool_removed": "Removed", "price_changed": "Price",
	"comparatif_published": "New comparison", "comparatif_updated": "Comparison updated", "comparatif_removed": "Comparison removed",
	"embeddings_changed": "Review text", retiredUpdated: "Updated", "price_backfilled": "Earlier price",
	"category_created": "New category", "category_updated": "Category updated", "category_removed": "Category removed",
}

// eventChoices are the names of the types in the filter.
var eventChoices = map[string]lang.Message{
	toolCreated: "New tools", "tool_updated": "Updated tools", toolRetired: "Retired tools", "tool_removed": "Removed tools", "price_changed": "Price changes",
	"comparatif_published": "New comparisons", "comparatif_updated": "Updated comparisons", "comparatif_removed": "Removed comparisons",
	"embeddings_changed": "Review texts", retiredUpdated: "Updates to retired tools", "price_backfilled": "Earlier prices",
	"category_created": "New categories", "category_updated": "Updated categories", "category_removed": "Removed categories", catalogPublished: "Releases",
}

type changesView struct {
	Feed       feedInfo
	Changes    eventList
	Oldest     struct{ Nodes []release }
	Categories []category
	Choices    []choice         `json:"-"`
	Releases   []releaseChanges `json:"-"`
	First      *release         `json:"-"` // the first release, if the page shows it
	ToolName   string           `json:"-"` // of the tool that the page is limited to
	Older      string           `json:"-"` // URL of the next page, or ""
}

// choice is an option of a filter.
type choice struct{ Value, Name string }

// releaseChanges are the changes of one release on a page.
type releaseChanges struct {
	Number int
	Day    string
	Totals *releaseTotals // nil if the page does not have the event about the release
	Items  []*changedItem
}

type releaseTotals struct{ Tools, Retired, Comparisons int }

// changedItem is a tool or comparison that changed in a release, with everything
// that happened to it.
type changedItem struct {
	Slug, Name, Path string
	Lang             template.HTMLAttr // language of Name if it is not the page's
	Kinds            []changeKind
	Category         string // label
	Changes          []fieldChange
	rank             int
	subject          string
}

type changeKind struct{ Code, Name string }

func (v *changesView) prepare(r *request) error {
	for _, kind := range append(slices.Clone(eventKinds), catalogPublished) {
		v.Choices = append(v.Choices, choice{kind, r.lang.Text(eventChoices[kind])})
	}
	for i := range v.Changes.Nodes {
		e := &v.Changes.Nodes[i]
		if len(v.Releases) == 0 || v.Releases[len(v.Releases)-1].Number != e.Release {
			v.Releases = append(v.Releases, releaseChanges{Number: e.Release, Day: dayOf(e.PublishedAt)})
		}
		v.Releases[len(v.Releases)-1].add(r.lang, e, v.Categories)
	}
	for _, changes := range v.Releases {
		slices.SortStableFunc(changes.Items, func(a, b *changedItem) int {
			return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.Slug, b.Slug))
		})
	}
	if v.Changes.PageInfo.HasNextPage {
		v.Older = r.With("after", v.Changes.PageInfo.EndCursor)
	}
	filtered := r.Param("type") != "" || r.Param("category") != "" || r.Param("tool") != ""
	if nodes := v.Oldest.Nodes; !filtered && v.Older == "" && len(nodes) > 0 && nodes[0].Number == 1 {
		v.First = &nodes[0]
	}
	if v.ToolName = r.Param("tool"); v.ToolName != "" && len(v.Changes.Nodes) > 0 {
		v.ToolName = v.Changes.Nodes[0].name()
	}
	return nil
}

// add adds a change to its release. Several changes of the same tool become one
// item.
func (c *releaseChanges) add(l lang.Language, e *event, categories []category) {
	if e.Type == catalogPublished {
		number := func(field string) int { n, _ := e.After[field].(float64); return int(n) }
		c.Totals = &releaseTotals{number("tools_total"), number("tools_retired"), number("comparatifs_total")}
		return
	}
	i := slices.IndexFunc(c.Items, func(item *changedItem) bool { return item.Slug == e.Slug && item.subject == e.subject() })
	if i < 0 {
		item := &changedItem{Slug: e.Slug, Name: e.name(), Path: e.path(), rank: len(eventKinds), subject: e.subject()}
		if item.subject != categoryEvents {
			item.Category = labelOf(categories, e.Category)
		}
		if item.subject != "tool" {
			item.Lang = catalogLang(l) // titles and labels are text, names are not
		}
		i, c.Items = len(c.Items), append(c.Items, item)
	}
	item := c.Items[i]
	item.Name = cmp.Or(strings.TrimSpace(e.name()), item.Name)
	item.rank = min(item.rank, max(slices.Index(eventKinds, e.Type), 0))
	item.Kinds = append(item.Kinds, changeKind{e.Type, l.Text(eventNames[e.Type])})
	for _, change := range e.changes(l, categories) {
		if !slices.ContainsFunc(item.Changes, func(known fieldChange) bool { return known.Field == change.Field }) {
			item.Changes = append(item.Changes, change)
		}
	}
}

// changes lists the fields to show, as the history of a tool does.
func (e *event) changes(l lang.Language, categories []category) []fieldChange {
	v := version{Type: e.Type, Before: e.Before, After: e.After}
	switch e.Type {
	case "price_changed", "price_backfilled":
		v.Fields = []string{"pricing", "price"}
	case "tool_updated", retiredUpdated, "comparatif_updated", "category_updated":
		v.Fields = slices.DeleteFunc(slices.Clone(e.Fields), func(field string) bool { return field == "updated_at" }) // changes with every update
	case toolCreated, toolRetired:
	default:
		return nil
	}
	return v.changes(l, categories)
}

func labelOf(categories []category, slug string) string {
	if i := slices.IndexFunc(categories, func(c category) bool { return c.Slug == slug }); i >= 0 {
		return categories[i].Label
	}
	return sentence(slug) // of a category that no longer exists
}

// sentence turns a slug or the name of a field into words.
func sentence(name string) string { return words.Sentence(name) }

// dayOf returns the day of a time.
func dayOf(at string) string { return at[:min(len(at), len(time.DateOnly))] }

type pricesView struct {
	Feed       feedInfo
	Changes    eventList
	Categories []category
	Releases   []releasePrices  `json:"-"`
	Periods    []pricesOfPeriod `json:"-"` // a summary
	Older      string           `json:"-"`
}

type releasePrices struct {
	Number int
	Day    string
	Items  []priceItem
}

// priceItem is a tool with a new price.
type priceItem struct {
	Name, URL, Category                    string
	Before, After                          string // prices
	BeforePricing, AfterPricing, ChangedAt string
	Direction, Percent                     string // "" if the prices cannot be compared
}

// pricesOfPeriod is how many prices rose and fell.
type pricesOfPeriod struct{ Days, Up, Down int }

const (
	pricesPerPage = 50
	// maxPriceBatches limits how many price changes one page reads to find those
	// in one direction, which the journal cannot select.
	maxPriceBatches = 5

	monthDays, quarterDays = 30, 90
)

// load counts the recent changes, and reads on until a page of changes in the
// selected direction is full.
func (v *pricesView) load(ctx context.Context, s *Site, r *request) error {
	if err := v.count(ctx, s, r); err != nil {
		return err
	}
	direction := r.Param("direction")
	if direction == "" {
		return nil
	}
	found := v.Changes
	v.Changes.Nodes = nil
	for batch := 0; ; batch++ {
		for _, e := range found.Nodes {
			if string(e.direction()) == direction {
				v.Changes.Nodes = append(v.Changes.Nodes, e)
			}
		}
		v.Changes.PageInfo = found.PageInfo
		if !found.PageInfo.HasNextPage || len(v.Changes.Nodes) >= pricesPerPage || batch == maxPriceBatches {
			return nil
		}
		variables := map[string]any{"after": found.PageInfo.EndCursor}
		if category := r.Param("category"); category != "" {
			variables["category"] = category
		}
		var more struct{ Changes eventList }
		if err := s.execute(ctx, r.asOf, "morePrices", variables, &more); err != nil {
			return err
		}
		found = more.Changes
	}
}

func (v *pricesView) count(ctx context.Context, s *Site, r *request) error {
	newest, err := time.Parse(time.DateOnly, v.Feed.UpdatedAt)
	if err != nil {
		return nil //nolint:nilerr // nothing has been published
	}
	before := func(days int) string { return newest.AddDate(0, 0, -days).Format(time.DateOnly) }
	variables := map[string]any{"month": before(monthDays), "quarter": before(quarterDays)}
	if category := r.Param("category"); category != "" {
		variables["categories"] = []any{category}
	}
	type counts []struct{ Count int }
	var result struct{ MonthUp, MonthDown, QuarterUp, QuarterDown counts }
	if err := s.execute(ctx, r.asOf, "priceSummary", variables, &result); err != nil {
		return err
	}
	sum := func(all counts) (total int) {
		for _, c := range all {
			total += c.Count
		}
		return total
	}
	v.Periods = []pricesOfPeriod{{monthDays, sum(result.MonthUp), sum(result.MonthDown)}, {quarterDays, sum(result.QuarterUp), sum(result.QuarterDown)}}
	return nil
}

// direction returns how the price of a tool changed, or "" if that is unknown.
func (e *event) direction() string {
	direction, _ := pricing.Compare(pricing.Read(fmt.Sprint(e.Before["price"])), pricing.Read(fmt.Sprint(e.After["price"])))
	return direction
}

func (v *pricesView) prepare(r *request) error {
	for _, e := range v.Changes.Nodes {
		item := priceItem{
			Name: e.name(), URL: r.Link("/tools/", e.Slug), Category: labelOf(v.Categories, e.Category),
			Before: textIn(e.Before, "price"), After: textIn(e.After, "price"), ChangedAt: textIn(e.After, "changed_at"),
		}
		if e.Tool.Name == "" { // it is retired or removed
			item.URL = fmt.Sprintf("/tools/%s?%s=%d", e.Slug, graph.AsOfName, e.Release)
		}
		if before, after := textIn(e.Before, "pricing"), textIn(e.After, "pricing"); before != after {
			item.BeforePricing, item.AfterPricing = before, after
		}
		direction, percent := pricing.Compare(pricing.Read(item.Before), pricing.Read(item.After))
		item.Direction = direction
		if percent != nil && *percent != 0 {
			item.Percent = r.lang.Percent(*percent)
		}
		if len(v.Releases) == 0 || v.Releases[len(v.Releases)-1].Number != e.Release {
			v.Releases = append(v.Releases, releasePrices{Number: e.Release, Day: dayOf(e.PublishedAt)})
		}
		last := &v.Releases[len(v.Releases)-1]
		last.Items = append(last.Items, item)
	}
	if v.Changes.PageInfo.HasNextPage {
		v.Older = r.With("after", v.Changes.PageInfo.EndCursor)
	}
	return nil
}
