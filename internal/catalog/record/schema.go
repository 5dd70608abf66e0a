package record

import (
	"maps"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

// FeedTypes lists the types of lines in a feed, each of which has a schema.
var FeedTypes = append([]string{TypeFeed}, Types...)

// FeedSchema returns the JSON Schema of the lines of one type, which are also the files
// of a catalog folder: the front matter of a Markdown file may omit the slug, and a file
// may list several categories.
func FeedSchema(recordType string) Schema {
	var rec any = &Header{}
	if recordType != TypeFeed {
		rec = New(recordType)
	}
	schema := objectSchema(reflect.ValueOf(rec).Elem())
	properties, required := schema["properties"].(Schema), schema["required"].([]string)
	properties["type"] = Schema{"const": recordType, "description": "The type of the record, in feeds only."}
	switch recordType {
	case TypeFeed:
		schema["description"] = "The file catalog.yml of a catalog folder, or the first line of a feed."
	case TypeCategory:
		one, several := Schema{"$ref": "#/$defs/category"}, Schema{"type": "array", "items": Schema{"$ref": "#/$defs/category"}}
		schema["description"] = "A category."
		return Schema{
			"description": "The file categories.yml of a catalog folder, which is a list of categories, or one category of a feed.",
			"anyOf":       []Schema{several, one},
			"$defs":       Schema{"category": schema},
		}
	default:
		folder := map[string]string{TypeTool: "tools", TypeComparison: "comparatifs", TypeRetired: "cimetiere"}[recordType]
		schema["description"] = "The front matter of a file in the folder " + folder + " of a catalog, or a line of a feed. " +
			"A file has its slug in its name and needs no other; a line of a feed must begin with its type and have a slug."
		schema["required"] = required[1:] // the slug is the first field
	}
	return schema
}

// objectSchema describes the objects that are read into a struct. Optional fields of
// this one have the value that they have by default.
func objectSchema(defaults reflect.Value) Schema {
	properties, required := Schema{}, []string{}
	for i, f := range newTable(defaults.Type(), nil).fields {
		declared := defaults.Type().Field(i)
		property := valueSchema(declared.Type, declared.Tag.Get("rule"))
		property["description"] = f.help
		switch value := defaults.Field(i); {
		case f.required:
			required = append(required, f.name)
		case value.Kind() != reflect.String: // the default of a string is that there is none
			property["default"] = jsontext.Value(Encode(value.Interface()))
		}
		properties[f.name] = property
	}
	return Schema{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// valueSchema describes the values that a feed may have for a Go type with a rule tag.
func valueSchema(t reflect.Type, tag string) Schema {
	switch t.Kind() {
	case reflect.Pointer:
		return Schema{"anyOf": []Schema{valueSchema(t.Elem(), tag), {"type": "null"}}}
	case reflect.Slice:
		return Schema{"type": "array", "items": valueSchema(t.Elem(), tag)}
	case reflect.Struct:
		return objectSchema(reflect.New(t).Elem())
	}
	valid, _ := newRule(t, tag) // newTable has checked the tag
	schema := maps.Clone(valid.schema)
	maps.Copy(schema, valid.feed)
	return schema
}
