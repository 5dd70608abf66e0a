package atom

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"palmares/internal/catalog/journal"
	"palmares/internal/core/lang"
)

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

// nameIn returns the name, title or label of a record, or what is known otherwise.
func nameIn(before, after state, otherwise string) string {
	for _, field := range []string{"label", "title", "name"} {
		otherwise = cmp.Or(after.str(field), before.str(field), otherwise)
	}
	return otherwise
}

// description describes an event in a language.
type description struct {
	lang          lang.Language
	event         *journal.Event
	before, after state
}

// text formats a field for people. Texts of the catalog stay as they are.
func (d *description) text(s state, name string) string {
	switch value := s[name].(type) {
	case nil:
		return d.lang.Text("none")
	case float64:
		return d.lang.Decimal(value, 0, 6)
	case string:
		if reason, ok := reasons[value]; ok && name == "reason" {
			return d.lang.Text(reason)
		}
	}
	return fmt.Sprint(s[name])
}

var reasons = map[string]lang.Message{
	"mort": "closed", "acquis": "acquired", "deprecie": "discontinued", "pivot": "became something else", "absorbe": "merged into another product",
}

// fieldNames are what entries call the fields of records.
var fieldNames = map[string]lang.Message{
	"name": "name", "tagline": "tagline", "category": "category", "pricing": "pricing", "price": "price", "score": "score", "verifiability": "verifiability",
	"obsolescence": "obsolescence", "tier": "tier", "note": "note", "domain": "website", "icp": "made for", "canonical_url": "overview", "avis_url": "full review",
	"alternatives_url": "alternatives", "updated_at": "review date", "reason": "reason", "retired_at": "retired", "title": "title", "winner": "winner",
	"mainstream": "mainstream", "sections_hash": "review", "winner_note": "why it won", "translations": "translations", "sources": "sources", "label": "label",
	"tool_a_slug": "first tool", "tool_b_slug": "second tool", "winner_slug": "slug of the winner",
}

func (d *description) field(name string) string {
	if message, ok := fieldNames[name]; ok {
		return d.lang.Text(message)
	}
	return name
}

// describe returns a title and a few lines. current is the tool's name, for events
// that do not contain one.
func (d *description) describe(current string) (title string, lines []string) {
	l, before, after, fields := d.lang, d.before, d.after, d.event.Fields
	name := nameIn(before, after, current)
	switch d.event.Type {
	case journal.EventCatalogPublished:
		c := readCatalog(d.event)
		title = l.Text("The catalog was published with %s, %s and %s", l.Plural(c.Tools, "%d tool|%d tools"), l.Plural(c.Comparisons, "%d comparison|%d comparisons"),
			l.Plural(c.Retired, "%d retired tool|%d retired tools"))
	case journal.EventToolCreated:
		title = l.Text("New tool: %s", name)
		if before != nil {
			title = l.Text("%s is back", name)
		}
		lines = []string{d.text(after, "tagline"), l.Text("Price: %s", d.text(after, "price")), l.Text("Score: %s", d.text(after, "score"))}
	case journal.EventCategoryCreated:
		title = l.Text("New category: %s", name)
	case journal.EventCategoryUpdated:
		if title = l.Text("%s is now called %s", d.text(before, "label"), name); !slices.Contains(fields, "label") {
			title = l.Text("The category %s was updated", name)
		}
	case journal.EventCategoryRemoved:
		title = l.Text("The category %s was removed", name)
	case journal.EventToolUpdated, journal.EventRetiredUpdated, journal.EventComparisonUpdated:
		var changed []string
		for _, field := range withoutDate(fields) {
			changed = append(changed, d.field(field))
		}
		title = l.Text("%s: %s changed", name, strings.Join(changed, ", "))
		lines = d.differences(fields)
	case journal.EventToolRetired:
		title = l.Text("%s is retired: %s", name, d.text(after, "reason"))
		lines = []string{d.text(after, "note")}
	case journal.EventToolRemoved:
		title = l.Text("%s is no longer in the catalog", name)
	case journal.EventPriceChanged:
		changed := "price"
		if before.str("price") == after.str("price") {
			changed = "pricing"
		}
		title = l.Text("%s: %s → %s", name, d.text(before, changed), d.text(after, changed))
		lines = append(d.differences([]string{"price", "pricing"}), l.Text("Since %s", d.text(after, "changed_at")))
	case journal.EventComparisonPublished:
		title = l.Text("New comparison: %s", name)
		lines = []string{l.Text("Winner: %s", d.text(after, "winner"))}
	case journal.EventComparisonRemoved:
		title = l.Text("No longer published: %s", name)
	case journal.EventEmbeddingsChanged:
		switch {
		case before == nil:
			title = l.Text("%s: its review is now available as text chunks", name)
		case after == nil:
			title = l.Text("%s: its review is no longer available as text chunks", name)
		case slices.Contains(fields, "chunks"):
			title = l.Text("%s: the text of its review changed", name)
		default:
			title = l.Text("%s: the metadata of its review chunks changed", name)
		}
	}
	if len(lines) == 0 {
		lines = []string{title}
	}
	return title, lines
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

func (d *description) differences(fields []string) (lines []string) {
	for _, field := range withoutDate(fields) {
		if was, is := d.text(d.before, field), d.text(d.after, field); was != is && !slices.Contains(unshownFields, field) {
			lines = append(lines, d.lang.Text("%s: %s → %s", d.field(field), was, is))
		}
	}
	return lines
}
