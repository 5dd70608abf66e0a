package journal

import (
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"palmares/internal/catalog/record"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

// schema is a JSON Schema.
type schema = map[string]any

// properties are written in the order of the list.
type properties []record.Property

// MarshalJSONTo is called by json.Marshal.
func (p properties) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, property := range p {
		if err := enc.WriteToken(jsontext.String(property.Name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, property.Schema, json.Deterministic(true)); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// object describes a JSON object that has exactly these properties.
func object(description string, list ...record.Property) schema {
	return schema{"description": description, "type": "object", "properties": properties(list), "required": names(list), "additionalProperties": false}
}

func anyOf(schemas ...schema) schema { return schema{"anyOf": schemas} }

// ref refers to one of the definitions.
func ref(name string) schema { return schema{"$ref": "#/$defs/" + name} }

func integer(description string, minimum int) schema {
	return schema{"description": description, "type": "integer", "minimum": minimum}
}

var (
	null      = schema{"type": "null"}
	anyTool   = anyOf(ref("tool"), ref("retired"))
	documents = anyOf(null, object("An embeddings document; null if the tool has none.",
		record.Property{Name: "hash", Schema: schema{"description": "The document's hash.", "type": "string", "pattern": "^sha256-[0-9a-f]{64}$"}}))
	priceFields = record.EventProperties[record.PriceChange]()

	// definitions are those of the events whose type starts with a noun.
	definitions = map[string]schema{
		"tool": {
			"tool":    object("An active tool, as `/api/v1/tools/{slug}` returns it.", toolFields...),
			"retired": object("A retired tool, as `/api/v1/cimetiere` returns it.", retiredFields...),
		},
		"comparatif": {"comparison": object("A comparison, as `/api/v1/comparatifs` returns it.", comparisonFields...)},
	}
)

// changes describes the events that have a state before and one after. Those
// with fields also list which fields differ.
var changes = map[string]struct {
	description   string
	before, after schema
	fields        []string
}{
	EventToolCreated:         {"A tool was added, or returned from retirement.", anyOf(null, ref("retired")), ref("tool"), nil},
	EventToolUpdated:         {"The record of an active or retired tool changed.", anyTool, anyTool, names(toolFields, retiredFields)},
	EventToolRetired:         {"A tool was retired, or added as a retired tool.", anyOf(null, ref("tool")), ref("retired"), nil},
	EventToolRemoved:         {"A tool was removed from the catalog.", anyTool, null, nil},
	EventPriceChanged:        {"The price of a tool changed.", object("The former price.", priceFields[1:]...), object("The new price.", priceFields...), nil},
	EventComparisonPublished: {"A comparison was published.", null, ref("comparison"), nil},
	EventComparisonUpdated:   {"A published comparison changed.", ref("comparison"), ref("comparison"), names(comparisonFields)},
	EventComparisonRemoved:   {"A comparison was removed, or is no longer published.", ref("comparison"), null, nil},
	EventEmbeddingsChanged:   {"The text of a tool's review was added, changed or removed: embed it again.", documents, documents, nil},
}

// eventSchema returns the JSON Schema of a type of events.
func eventSchema(event string) schema {
	envelope := []record.Property{
		{Name: "id", Schema: schema{"description": "The event's permanent identifier.", "type": "string", "pattern": "^evt_[1-9][0-9]*$"}},
		{Name: "type", Schema: schema{"description": "The event's type.", "const": event}},
		{Name: "timestamp", Schema: schema{"description": "When the release was published.", "type": "string", "format": "date-time"}},
		{Name: "release", Schema: integer("The number of the release that made the change.", 1)},
	}
	var document schema
	if event == EventCatalogPublished {
		document = object("A release was published. This is the last event of each release.",
			append(envelope, record.Property{Name: "data", Schema: releaseSchema()})...)
	} else {
		document = object(changes[event].description, append(envelope,
			record.Property{Name: "slug", Schema: schema{"description": "The identifier of the tool or comparison that changed.", "type": "string", "minLength": 1}},
			record.Property{Name: "data", Schema: changeSchema(event)})...)
	}
	document["$schema"], document["$id"], document["title"] = "https://json-schema.org/draft/2020-12/schema", SchemasPath+event+".json", event
	noun, _, _ := strings.Cut(event, ".")
	if defs := definitions[noun]; defs != nil {
		document["$defs"] = defs
	}
	return document
}

func changeSchema(event string) schema {
	change := changes[event]
	states := []record.Property{{Name: "before", Schema: change.before}, {Name: "after", Schema: change.after}}
	if change.fields != nil {
		states = append([]record.Property{{Name: "fields", Schema: schema{
			"description": "The names of the fields that differ.", "type": "array", "items": schema{"enum": change.fields}, "uniqueItems": true,
		}}}, states...)
	}
	return anyOf(object("The state before and after.", states...), object("Sent by webhooks instead of an event longer than 20,000 bytes.",
		record.Property{Name: "too_long", Schema: schema{"const": true}},
		record.Property{Name: "bytes", Schema: schema{"description": "The length of the whole event.", "type": "integer"}},
		record.Property{Name: "fields_changed", Schema: schema{"description": "How many fields differ.", "type": "integer"}},
		record.Property{Name: "link", Schema: schema{"description": "Where to fetch the whole event.", "type": "string", "format": "uri"}},
	))
}

func releaseSchema() schema {
	return object("What the release contains.",
		record.Property{Name: "updated_at", Schema: schema{"description": "The feed's date.", "type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}},
		record.Property{Name: "tools_total", Schema: integer("Active tools.", 0)},
		record.Property{Name: "tools_retired", Schema: integer("Retired tools.", 0)},
		record.Property{Name: "comparatifs_total", Schema: integer("Published comparisons.", 0)},
		record.Property{Name: "events", Schema: schema{
			"description": "How many events of each type the release has, this one not included.", "type": "object",
			"propertyNames": schema{"enum": Events[1:]}, "additionalProperties": schema{"type": "integer", "minimum": 1},
		}},
	)
}

// SchemasPath is where the JSON Schemas of events are served, as <type>.json.
const SchemasPath = "/schemas/events/"

// SchemaHandler serves the JSON Schema of each type of event.
func SchemaHandler() http.Handler {
	schemas := map[string]*cache.Entry{}
	for _, event := range Events {
		text, err := json.Marshal(eventSchema(event), json.Deterministic(true), jsontext.WithIndent("  "))
		if err != nil {
			panic(err) // the schemas are the program's own
		}
		schemas[event+".json"] = cache.NewEntry(append(text, '\n'), http.Header{
			"Content-Type":           {"application/schema+json"},
			"Cache-Control":          {"s-maxage=3600, stale-while-revalidate=86400"},
			"Vary":                   {"Accept-Encoding"},
			"X-Content-Type-Options": {"nosniff"},
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		schema, known := schemas[strings.TrimPrefix(r.URL.Path, SchemasPath)]
		var err error
		switch {
		case !known:
			err = problem.New(problem.NotFound, "There is no event of that type. Types: %s.", strings.Join(Events, ", "))
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			err = problem.New(problem.WrongMethod, "The method is not allowed: use GET.")
		default:
			err = schema.Write(w, r)
		}
		if err != nil {
			problem.Write(w, err)
		}
	})
}
