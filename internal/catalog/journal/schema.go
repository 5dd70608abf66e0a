package journal

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"palmares/internal/catalog/jsonschema"
	"palmares/internal/catalog/record"
)

type (
	schema   = record.Schema
	property = record.Property
)

// object describes a JSON object that has exactly these properties.
func object(description string, list ...property) schema {
	properties := schema{}
	for _, p := range list {
		properties[p.Name] = p.Schema
	}
	return schema{"description": description, "type": "object", "properties": properties, "required": names(list), "additionalProperties": false}
}

// prop returns a property with a description, if it needs one.
func prop(name, description string, s schema) property {
	if description != "" {
		s = maps.Clone(s)
		s["description"] = description
	}
	return property{Name: name, Schema: s}
}

func anyOf(schemas ...schema) schema { return schema{"anyOf": schemas} }

// ref refers to one of the definitions.
func ref(name string) schema { return schema{"$ref": "#/$defs/" + name} }

var (
	null      = schema{"type": "null"}
	integer   = schema{"type": "integer"}
	count     = schema{"type": "integer", "minimum": 0}
	positive  = schema{"type": "integer", "minimum": 1}
	hash      = schema{"type": "string", "pattern": "^sha256-[0-9a-f]{64}$"}
	anyTool   = anyOf(ref("tool"), ref("retired"))
	documents = anyOf(null, object("An embeddings document; null if the tool has none.",
		prop("hash", "The document's hash.", hash)))
	priceFields = record.EventProperties[record.PriceChange]()
	priceBefore = object("The former price.", priceFields[1:]...)
	priceAfter  = object("The new price.", priceFields...)
	activeTool  = object("An active tool, as `/api/v1/tools/{slug}` returns it, with its tier, whether it is mainstream, "+
		"its obsolescence, translations and sources, and a hash of its review.", toolFields...)
	retiredTool = object("A retired tool, as `/api/v1/cimetiere` returns it, with its category and score.",
		retiredFields...)
	comparison = object("A comparison, as `/api/v1/comparatifs` returns it, with the slugs of its tools, why the "+
		"winner won and translations.", comparisonFields...)

	// definitions are those of the events whose type starts with a noun.
	definitions = map[string]schema{
		"category": {"category": object("A category.", categoryFields...)},
		"tool": {
			"tool":    activeTool,
			"retired": retiredTool,
		},
		"retired":    {"retired": retiredTool},
		"comparatif": {"comparison": comparison},
	}
)

// changes describes the events that have a state before and one after.
var changes = map[string]struct {
	description   string
	before, after schema
}{
	EventCategoryCreated: {"A category was added.", null, ref("category")},
	EventCategoryUpdated: {"The label of a category or its translation changed.", ref("category"), ref("category")},
	EventCategoryRemoved: {"A category was removed.", ref("category"), null},
	EventToolCreated:     {"A tool was added, or returned from retirement.", anyOf(null, ref("retired")), ref("tool")},
	EventToolUpdated:     {"The record of an active tool changed.", ref("tool"), ref("tool")},
	EventToolRetired:     {"A tool was retired, or added as a retired tool.", anyOf(null, ref("tool")), ref("retired")},
	EventToolRemoved:     {"A tool was removed from the catalog.", anyTool, null},
	EventRetiredUpdated:  {"The record of a retired tool changed.", ref("retired"), ref("retired")},
	EventPriceChanged:    {"The price of a tool changed.", priceBefore, priceAfter},
	EventPriceBackfilled: {"An earlier price change was added to the history of a tool. Its current price did not " +
		"change.", priceBefore, priceAfter},
	EventComparisonPublished: {"A comparison was published.", null, ref("comparison")},
	EventComparisonUpdated:   {"A published comparison changed.", ref("comparison"), ref("comparison")},
	EventComparisonRemoved:   {"A comparison was removed, or is no longer published.", ref("comparison"), null},
	EventEmbeddingsChanged:   {"The embeddings document of a tool was added, changed or removed. Embed it again if `chunks` differ; otherwise update the metadata that you store with the vectors.", documents, documents},
}

// eventSchema returns the JSON Schema of a type of events.
func eventSchema(event string) schema {
	envelope := envelopeOf(event, prop("id", "The event's permanent identifier.", schema{"type": "string", "pattern": "^evt_[1-9][0-9]*$"}))
	var document schema
	if event == EventCatalogPublished {
		document = object("A release was published. This is the last event of each release.", append(envelope, prop("data", "", releaseSchema()))...)
	} else {
		document = object(changes[event].description, append(envelope,
			prop("slug", "The identifier of the tool, comparison or category that changed.", schema{"type": "string", "minLength": 1}),
			prop("data", "", changeSchema(event)))...)
	}
	noun, _, _ := strings.Cut(event, ".")
	if defs := definitions[noun]; defs != nil {
		document["$defs"] = defs
	}
	return document
}

// RESTSchemas returns the JSON Schemas of events as REST returns them: whole, however long
// they are.
func RESTSchemas() map[string]record.Schema {
	all := map[string]record.Schema{}
	for _, event := range Events {
		document := eventSchema(event)
		properties := document["properties"].(schema)
		if states, ok := properties["data"].(schema)["anyOf"].([]schema); ok {
			properties["data"] = states[0]
		}
		all[event] = document
	}
	return all
}

// envelopeOf returns the properties that events and batches have in common.
func envelopeOf(kind string, id property) []property {
	return []property{
		id,
		prop("type", "The type.", schema{"const": kind}),
		prop("timestamp", "When the release was published.", schema{"type": "string", "format": "date-time"}),
		prop("release", "The number of the release that made the change.", positive),
	}
}

// batchSchema returns the JSON Schema of a batch. It contains the schemas of all
// events, so that validators need no other document.
func batchSchema() schema {
	events, defs := []schema{}, map[string]schema{}
	for _, event := range Events {
		defs[event] = jsonschema.Titled(SchemasPath, event, eventSchema(event))
		events = append(events, schema{"$ref": SchemasPath + event + ".json"})
	}
	document := object("Several events of one release in one webhook request, for endpoints that receive batches.",
		append(envelopeOf(EventsBatch,
			prop("id", "The batch's identifier. The same identifier always means the same events.", schema{"type": "string", "pattern": "^batch_[1-9][0-9]*_[0-9a-f]{16}$"})),
			prop("data", "", object("The content of the batch.",
				prop("events", "The events, oldest first.", schema{"type": "array", "minItems": 1, "maxItems": MaxBatch, "items": anyOf(events...)}))))...)
	document["$defs"] = defs
	return document
}

func changeSchema(event string) schema {
	change := changes[event]
	states := []property{prop("before", "", change.before), prop("after", "", change.after)}
	if fields := updatable[event]; fields != nil {
		differ := schema{"type": "array", "items": schema{"enum": names(fields)}, "uniqueItems": true}
		states = append(states, prop("fields", "The names of the fields that differ.", differ))
	}
	return anyOf(object("The state before and after.", states...), object("Sent by webhooks instead of an event longer than 20,000 bytes.",
		prop("too_long", "", schema{"const": true}),
		prop("bytes", "The length of the whole event.", integer),
		prop("fields_changed", "How many fields differ.", integer),
		prop("link", "Where to fetch the whole event.", schema{"type": "string", "format": "uri"}),
	))
}

func releaseSchema() schema {
	return object("What the release contains.",
		prop("updated_at", "The feed's date.", record.DateSchema),
		prop("tools_total", "Active tools.", count),
		prop("tools_retired", "Retired tools.", count),
		prop("comparatifs_total", "Published comparisons.", count),
		prop("events", "How many events of each type the release has, this one not included.",
			schema{"type": "object", "propertyNames": schema{"enum": Events[1:]}, "additionalProperties": positive}),
	)
}

// SchemasPath is where the JSON Schemas of events are served, as <type>.json.
const SchemasPath = "/schemas/events/"

// SchemaTypes are the types that have a JSON Schema: those of events, and batches.
var SchemaTypes = append(slices.Clone(Events), EventsBatch)

// SchemaHandler serves the JSON Schema of each type.
func SchemaHandler() http.Handler {
	return jsonschema.Handler(SchemasPath, SchemaTypes, func(name string) []byte {
		if name == EventsBatch {
			return jsonschema.Document(SchemasPath, name, batchSchema())
		}
		return jsonschema.Document(SchemasPath, name, eventSchema(name))
	}, "There is no event type with this name. Event types")
}
