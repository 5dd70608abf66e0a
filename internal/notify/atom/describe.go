package atom

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"palmares/ent"
	"palmares/internal/catalog/journal"
)

// description is an event for people.
type description struct {
	title string
	lines []string
	page  string // what it is about; "" for none
}

// state is what an event tells of something before or after.
type state map[string]any

func (s state) text(name string) string {
	switch value := s[name].(type) {
	case nil:
		return "none"
	case string:
		return value
	default:
		return fmt.Sprint(value)
	}
}

// read is nil for what was not there.
func read(value []byte) state {
	var s state
	_ = json.Unmarshal(value, &s) // written by us; what is not JSON tells nothing
	return s
}

var reasons = map[string]string{
	"mort": "closed", "acquis": "bought", "deprecie": "given up", "pivot": "became something else", "absorbe": "became part of another product",
}

// describe says what happened. The tool is as it is now, nil if it is gone.
func describe(event *journal.Event, known *ent.Tool) description {
	before, after := read(event.Before), read(event.After)
	d := description{page: page(before, after, known)}
	name := nameOf(event, before, after, known)
	switch event.Type {
	case journal.EventToolCreated:
		d.title = "New tool: " + name
		if before != nil {
			d.title = name + " is back"
		}
		d.lines = append(d.lines, after.text("tagline"), "Price: "+after.text("price"), "Score: "+after.text("score"))
	case journal.EventToolUpdated, journal.EventComparisonUpdated:
		d.title = name + ": " + strings.Join(shownFields(event.Fields), ", ") + " changed"
		d.lines = differences(event.Fields, before, after)
	case journal.EventToolRetired:
		reason := after.text("reason")
		d.title = name + " is retired: " + cmp.Or(reasons[reason], reason)
		d.lines = append(d.lines, after.text("note"))
	case journal.EventToolRemoved:
		d.title = name + " is no longer in the catalog"
	case journal.EventPriceChanged:
		d.title = name + ": " + priceChange(before, after)
		d.lines = append(differences([]string{"price", "pricing"}, before, after), "Since "+after.text("changed_at"))
	case journal.EventComparisonPublished:
		d.title = "New comparison: " + name
		d.lines = append(d.lines, "Winner: "+after.text("winner"))
	case journal.EventComparisonRemoved:
		d.title = "No longer published: " + name
	case journal.EventEmbeddingsChanged:
		d.title = name + ": " + reviewChange(before, after)
	}
	if len(d.lines) == 0 {
		d.lines = []string{d.title}
	}
	return d
}

// nameOf is what people know it by: as it was then, or as it is now.
func nameOf(event *journal.Event, before, after state, known *ent.Tool) string {
	for _, s := range []state{after, before} {
		for _, field := range []string{"name", "title"} {
			if name, ok := s[field].(string); ok && name != "" {
				return name
			}
		}
	}
	if known != nil {
		return known.Name
	}
	return event.Slug
}

func page(before, after state, known *ent.Tool) string {
	for _, s := range []state{after, before} {
		if address, ok := s["canonical_url"].(string); ok {
			return address
		}
	}
	if known != nil {
		return known.CanonicalURL
	}
	return ""
}

func priceChange(before, after state) string {
	if before.text("price") == after.text("price") {
		return before.text("pricing") + " → " + after.text("pricing")
	}
	return before.text("price") + " → " + after.text("price")
}

func reviewChange(before, after state) string {
	switch {
	case before == nil:
		return "its review can be had as text chunks"
	case after == nil:
		return "its review can no longer be had as text chunks"
	}
	return "the text of its review changed"
}

// shownFields leaves the date out, which changes with everything.
func shownFields(fields []string) []string {
	shown := slices.DeleteFunc(slices.Clone(fields), func(field string) bool { return field == "updated_at" })
	if len(shown) == 0 {
		return fields
	}
	return shown
}

func differences(fields []string, before, after state) []string {
	var lines []string
	for _, field := range shownFields(fields) {
		if was, is := before.text(field), after.text(field); was != is {
			lines = append(lines, field+": "+was+" → "+is)
		}
	}
	return lines
}
