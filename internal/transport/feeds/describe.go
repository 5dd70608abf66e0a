package feeds

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/record"
	"palmares/internal/core/lang"
	"palmares/internal/core/text"
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
		if f, _ := record.FieldNamed(name); f.Kind == record.Code {
			if word, ok := record.Word(value); ok {
				return d.lang.Text(word)
			}
		}
	}
	return fmt.Sprint(s[name])
}

// field returns the name of a field within a sentence.
func (d *description) field(name string) string {
	if f, ok := record.FieldNamed(name); ok {
		return text.LowerFirst(d.lang.Text(f.Label))
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

func (d *description) differences(fields []string) (lines []string) {
	for _, field := range withoutDate(fields) {
		f, _ := record.FieldNamed(field)
		if was, is := d.text(d.before, field), d.text(d.after, field); was != is && f.Kind != record.Nested {
			lines = append(lines, d.lang.Text("%s: %s → %s", d.field(field), was, is))
		}
	}
	return lines
}
