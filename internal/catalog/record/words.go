package record

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"palmares/ent/schema"
	"palmares/internal/core/lang"
)

// Codes returns the values of a column of tools that has few of them, as ent/schema lists
// them. It panics if there is no such column.
func Codes(column string) (codes []string) {
	for _, f := range (schema.Tool{}).Fields() {
		if descriptor := f.Descriptor(); descriptor.Name == column {
			for _, value := range descriptor.Enums {
				codes = append(codes, value.V)
			}
		}
	}
	if codes == nil {
		panic("ent/schema: tools have no enum " + column)
	}
	return codes
}

// codes are the words for the values of such columns, in the middle of a sentence.
var codes = map[string]lang.Message{
	"gratuit": "free", "freemium": "freemium", "payant": "paid",
	"vibe-coder": "vibe coders", "agentic-engineer": "agentic engineers", "mixte": "vibe coders and agentic engineers",
	"mort": "shut down", "acquis": "acquired", "deprecie": "discontinued", "pivot": "pivoted", "absorbe": "merged into another product",
}

// Word returns the word for a code, as a feed or an enum of GraphQL spells it.
func Word(code string) (word lang.Message, ok bool) {
	word, ok = codes[strings.ReplaceAll(code, "_", "-")]
	return word, ok
}

// Field describes a field of records to those who show its values.
type Field struct {
	Name  string       // in events
	Label lang.Message // for people
	Mean  lang.Message // the label of the average; empty if there is none
	Kind  Kind
}

// Kind is what the values of a field are.
type Kind string

// The kinds of fields.
const (
	Text   Kind = "text"   // of any length, URLs included
	Code   Kind = "code"   // one of few, each with a word
	Number Kind = "number" // a rating, or a tier
	Flag   Kind = "flag"
	Date   Kind = "date"
	Price  Kind = "price"
	Slug   Kind = "slug"
	Nested Kind = "nested" // lists and objects
)

func kindOf(t reflect.Type, rule string) Kind {
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem(), rule)
	case reflect.Bool:
		return Flag
	case reflect.Int, reflect.Float64:
		return Number
	case reflect.Slice, reflect.Struct:
		return Nested
	}
	switch rule {
	case "icp", "pricing", "reason":
		return Code
	case "date", "price", "slug":
		return Kind(rule)
	}
	return Text
}

// Fields lists the fields that events show of any record, each name once.
var Fields = func() (all []Field) {
	for _, rec := range []any{Tool{}, Retired{}, Comparison{}, Category{}, PriceChange{}} {
		for declared := range reflect.TypeOf(rec).Fields() {
			name := cmp.Or(declared.Tag.Get("eventname"), strings.Split(declared.Tag.Get("json"), ",")[0])
			tag := declared.Tag.Get
			if label := lang.Message(tag("label")); label != "" && !slices.ContainsFunc(all, func(f Field) bool { return f.Name == name }) {
				all = append(all, Field{name, label, lang.Message(tag("mean")), kindOf(declared.Type, tag("rule"))})
			}
		}
	}
	return append(all, Field{Name: "winner_slug", Label: "Winner’s slug", Kind: Slug})
}()

// FieldNamed returns the field with a name in events.
func FieldNamed(name string) (f Field, ok bool) {
	if i := slices.IndexFunc(Fields, func(f Field) bool { return f.Name == name }); i >= 0 {
		return Fields[i], true
	}
	return Field{Name: name}, false
}
