package journal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"palmares/ent"
)

// Event is an entry as readers are told it: what something was and is in the
// REST interface.
type Event struct {
	Number                  int // goes up with time, never changes, and is of no other event, also after a restored backup
	Type                    string
	Slug                    string // empty for a release
	Release                 int
	At                      time.Time
	Category, OtherCategory string
	Fields                  []string       // which of them differ
	Before, After           jsontext.Value // nil for not there
}

const idPrefix = "evt_"

// ID names an event for ever.
func (e *Event) ID() string { return idPrefix + strconv.Itoa(e.Number) }

// ParseID is the number of an event's id.
func ParseID(id string) (int, bool) {
	digits, ours := strings.CutPrefix(id, idPrefix)
	number, err := strconv.Atoi(digits)
	if !ours || err != nil || number < 1 || strconv.Itoa(number) != digits {
		return 0, false
	}
	return number, true
}

// About tells whether an event concerns a category.
func (e *Event) About(category string) bool {
	return e.Category == category || e.OtherCategory == category
}

// AboutTool tells whether the slug is a tool's.
func (e *Event) AboutTool() bool {
	return e.Slug != "" && !strings.HasPrefix(e.Type, "comparatif.")
}

// body is an event as it is sent, in this order.
type body struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
	Release   int    `json:"release"`
	Slug      string `json:"slug,omitzero"`
	Data      any    `json:"data"`
}

type change struct {
	Fields []string       `json:"fields,omitzero"`
	Before jsontext.Value `json:"before"`
	After  jsontext.Value `json:"after"`
}

// JSON is an event as its schema describes it.
func (e *Event) JSON() []byte {
	if e.Type == EventCatalogPublished {
		return e.JSONWith(e.After)
	}
	return e.JSONWith(change{e.Fields, orNull(e.Before), orNull(e.After)})
}

// JSONWith is an event with other data, for where its own would be too long.
func (e *Event) JSONWith(data any) []byte {
	text, err := json.Marshal(body{e.ID(), e.Type, e.At.UTC().Format(time.RFC3339), e.Release, e.Slug, data})
	if err != nil {
		panic(err) // what is stored was written by us
	}
	return text
}

func orNull(value jsontext.Value) jsontext.Value {
	if value == nil {
		return jsontext.Value("null")
	}
	return value
}

// eventOf reads an entry that has an event, with its release.
func eventOf(row *ent.JournalEntry) (*Event, error) {
	e := &Event{
		Number: row.ID, Type: *row.Event, Slug: row.Slug, Release: row.ReleaseNumber,
		Category: row.Category, OtherCategory: row.OtherCategory,
	}
	if row.Edges.Release != nil {
		e.At = row.Edges.Release.ImportedAt
	}
	var err error
	if e.Before, err = shown(e.Type, row.Before); err != nil {
		return nil, fmt.Errorf("journal entry %d, before: %w", row.ID, err)
	}
	if e.After, err = shown(e.Type, row.After); err != nil {
		return nil, fmt.Errorf("journal entry %d, after: %w", row.ID, err)
	}
	if e.Type == EventToolUpdated || e.Type == EventComparisonUpdated {
		e.Fields, err = differing(e.Before, e.After)
	}
	return e, err
}

// field is one of a representation: its name there, and in the journal.
type field struct{ name, stored string }

func fields(names ...string) []field {
	all := make([]field, len(names))
	for i, name := range names {
		all[i] = field{name, name}
	}
	return all
}

// What the REST interface shows of each kind of record.
var (
	toolFields = fields("slug", "name", "domain", "category", "icp", "pricing", "price", "score", "verifiability",
		"tagline", "canonical_url", "avis_url", "alternatives_url", "updated_at")
	retiredFields    = fields("slug", "name", "reason", "retired_at", "note")
	comparisonFields = []field{{"slug", "slug"}, {"title", "title"}, {"winner", "winner_name"}, {"updated_at", "updated_at"}, {"canonical_url", "canonical_url"}}
)

// shown is what the REST interface shows of a state in the journal: nothing of a
// comparison that is not published.
func shown(event string, state *string) (jsontext.Value, error) {
	if state == nil {
		return nil, nil
	}
	noun, _, _ := strings.Cut(event, ".")
	if noun != "tool" && noun != "comparatif" {
		return jsontext.Value(*state), nil
	}
	var stored map[string]jsontext.Value
	if err := json.Unmarshal([]byte(*state), &stored); err != nil {
		return nil, err
	}
	shape := toolFields
	if noun == "comparatif" {
		if string(stored["published"]) == "false" {
			return nil, nil
		}
		shape = comparisonFields
		if _, named := stored["winner_name"]; !named { // from before names were kept
			stored["winner_name"] = stored["winner"]
		}
	} else if _, retired := stored["retired_at"]; retired {
		shape = retiredFields
	}
	text := []byte{'{'}
	for i, f := range shape {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, '"')
		text = append(text, f.name...)
		text = append(text, '"', ':')
		text = append(text, orNull(stored[f.stored])...)
	}
	return append(text, '}'), nil
}

// differing names what is not the same in two states, in their order.
func differing(before, after jsontext.Value) ([]string, error) {
	var was, is map[string]jsontext.Value
	if err := json.Unmarshal(before, &was); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(after, &is); err != nil {
		return nil, err
	}
	names := []string{}
	for _, f := range slices.Concat(toolFields, retiredFields[2:], comparisonFields[1:3]) {
		if string(was[f.name]) != string(is[f.name]) && !slices.Contains(names, f.name) {
			names = append(names, f.name)
		}
	}
	return names, nil
}
