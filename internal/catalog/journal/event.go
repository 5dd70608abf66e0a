package journal

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"palmares/ent"
	"palmares/internal/catalog/record"
)

// Event is a change as clients receive it. The states before and after have the
// fields of the REST API, and those that only GraphQL and exports have.
type Event struct {
	Number                  int // increases with time and is never reused, even after a backup is restored
	Type                    string
	Slug                    string // empty for a release
	Release                 int
	At                      time.Time
	Category, OtherCategory string
	Fields                  []string       // names of the fields that differ
	Before, After           jsontext.Value // nil for what does not exist
}

// IDPrefix is the prefix of event IDs.
const IDPrefix = "evt_"

// ID returns the permanent ID of the event with a number.
func ID(number int) string { return IDPrefix + strconv.Itoa(number) }

// ID returns the permanent ID of the event.
func (e *Event) ID() string { return ID(e.Number) }

// ParseID returns the number of the event with an ID.
func ParseID(id string) (int, bool) {
	digits, hasPrefix := strings.CutPrefix(id, IDPrefix)
	number, err := strconv.Atoi(digits)
	if !hasPrefix || err != nil || number < 1 || strconv.Itoa(number) != digits {
		return 0, false
	}
	return number, true
}

// AboutTool reports whether the event's slug is a tool's.
func (e *Event) AboutTool() bool { return slices.Contains(ToolEvents, e.Type) }

// Publication is what an event of a release says after it.
type Publication struct {
	UpdatedAt    string         `json:"updated_at"`
	ToolsTotal   int            `json:"tools_total"`
	ToolsRetired int            `json:"tools_retired"`
	Comparisons  int            `json:"comparatifs_total"`
	Events       map[string]int `json:"events"` // their number, by type
}

// JSON returns the event as its schema describes it.
func (e *Event) JSON() []byte {
	if e.Type == EventCatalogPublished {
		return e.JSONWith(e.After)
	}
	return e.JSONWith(struct {
		Fields []string       `json:"fields,omitzero"`
		Before jsontext.Value `json:"before"`
		After  jsontext.Value `json:"after"`
	}{e.Fields, orNull(e.Before), orNull(e.After)})
}

// JSONWith returns the event with data in place of its own.
func (e *Event) JSONWith(data any) []byte {
	return encode(e.ID(), e.Type, e.At, e.Release, e.Slug, data)
}

func encode(id, kind string, at time.Time, release int, slug string, data any) []byte {
	return record.Encode(struct {
		ID        string `json:"id"`
		Type      string `json:"type"`
		Timestamp string `json:"timestamp"`
		Release   int    `json:"release"`
		Slug      string `json:"slug,omitzero"`
		Data      any    `json:"data"`
	}{id, kind, at.UTC().Format(time.RFC3339), release, slug, data})
}

// EventsBatch is the type of a batch, which webhooks use to send several events
// of one release in one request. It is not in the journal.
const EventsBatch = "events.batch"

// MaxBatch is the maximum number of events in a batch.
const MaxBatch = 100

// BatchID returns the identifier of the batch of the events with these numbers,
// in this order. The same identifier always means the same events.
func BatchID(numbers []int) string {
	hash := sha256.New()
	for _, number := range numbers {
		fmt.Fprintln(hash, number)
	}
	return fmt.Sprintf("batch_%d_%x", numbers[0], hash.Sum(nil)[:8])
}

// ParseBatchID returns the number of the first event of the batch with an
// identifier.
func ParseBatchID(id string) (first int, ok bool) {
	rest, isBatch := strings.CutPrefix(id, "batch_")
	digits, _, _ := strings.Cut(rest, "_")
	first, err := strconv.Atoi(digits)
	return first, isBatch && err == nil
}

// BatchJSON returns a batch of the events of a release as its schema describes it.
func BatchJSON(id string, release int, at time.Time, events []jsontext.Value) []byte {
	return encode(id, EventsBatch, at, release, "", struct {
		Events []jsontext.Value `json:"events"`
	}{events})
}

func orNull(value jsontext.Value) jsontext.Value {
	if value == nil {
		return jsontext.Value("null")
	}
	return value
}

// eventOf reads an event from its entry, which must have its release loaded.
func eventOf(row *ent.JournalEntry) (*Event, error) {
	e := &Event{
		Number: row.ID, Type: *row.Event, Slug: row.Slug, Release: row.ReleaseNumber,
		Category: row.Category, OtherCategory: row.OtherCategory,
	}
	if row.Edges.Release != nil {
		e.At = row.Edges.Release.ImportedAt
	}
	before, err := readState(e.Type, row.Before)
	if err != nil {
		return nil, fmt.Errorf("journal entry %d, before: %w", row.ID, err)
	}
	after, err := readState(e.Type, row.After)
	if err != nil {
		return nil, fmt.Errorf("journal entry %d, after: %w", row.ID, err)
	}
	e.Before, e.After = before.json, after.json
	if updatable[e.Type] != nil {
		e.Fields = []string{}
		for _, field := range updatable[e.Type] {
			if string(before.values[field.Name]) != string(after.values[field.Name]) {
				e.Fields = append(e.Fields, field.Name)
			}
		}
	}
	return e, nil
}

// The fields that events show of each record. Reviews require a key, so events have
// their hash.
var (
	categoryFields = record.EventProperties[record.Category]()
	toolFields     = append(record.EventProperties[record.Tool](),
		stored("sections_hash", "sections_hash", "A hash of the sections of the review.", anyOf(hash, null)))
	retiredFields    = record.EventProperties[record.Retired]()
	comparisonFields = append(record.EventProperties[record.Comparison](),
		stored("winner_slug", "winner", "The slug of the winning tool.", schema{"type": "string"}))
	documentFields = []record.Property{{Name: "chunks", Stored: "hash"}, {Name: "metadata", Stored: "metadata"}}
	// FieldNames are the names of all fields that an event may list as changed, in
	// the order in which it does.
	FieldNames = names(toolFields, retiredFields, comparisonFields, categoryFields, documentFields)
)

// stored returns a property that is stored under another name or in another form than
// in the record.
func stored(name, as, description string, s schema) record.Property {
	p := prop(name, description, s)
	p.Stored = as
	return p
}

// fieldsOf returns the fields that an event shows of a record.
func fieldsOf(event string, values map[string]jsontext.Value) []record.Property {
	noun, _, _ := strings.Cut(event, ".")
	_, retired := values["retired_at"]
	switch {
	case retired:
		return retiredFields
	case noun == "tool":
		return toolFields
	case noun == "category":
		return categoryFields
	}
	return comparisonFields
}

func names(lists ...[]record.Property) (all []string) {
	for _, property := range slices.Concat(lists...) {
		if !slices.Contains(all, property.Name) {
			all = append(all, property.Name)
		}
	}
	return all
}

// state is a record as an event shows it, and the values that determine which fields
// differ.
type state struct {
	json   jsontext.Value
	values map[string]jsontext.Value
}

// readState reduces a stored state to the fields that events show. For readers,
// unpublished comparisons do not exist.
func readState(event string, stored *string) (s state, err error) {
	if stored == nil {
		return s, nil
	}
	switch event {
	case EventCatalogPublished, EventPriceChanged, EventPriceBackfilled:
		return state{json: jsontext.Value(*stored)}, nil
	}
	var values map[string]jsontext.Value
	if err := json.Unmarshal([]byte(*stored), &values); err != nil {
		return s, err
	}
	if event == EventEmbeddingsChanged { // old entries have no metadata
		return state{json: jsontext.Value(`{"hash":` + string(values["hash"]) + "}"),
			values: map[string]jsontext.Value{"chunks": values["hash"], "metadata": values["metadata"]}}, nil
	}
	if string(values["published"]) == "false" {
		return s, nil
	}
	s.values = map[string]jsontext.Value{}
	var members []string
	for _, f := range fieldsOf(event, values) {
		value := values[f.Stored]
		if value == nil {
			value = f.Default
		}
		if name, named := values["winner_name"]; named && f.Name == "winner" { // missing in old entries
			value = name
		}
		s.values[f.Name] = orNull(value)
		members = append(members, `"`+f.Name+`":`+string(s.values[f.Name]))
	}
	s.json = jsontext.Value("{" + strings.Join(members, ",") + "}")
	return s, nil
}
