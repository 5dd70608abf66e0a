package record

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"palmares/ent"
	"palmares/internal/core/text"
)

// field is one field of a record, derived from its struct tags.
type field struct {
	name     string
	required bool
	rule     rule
	event    string // description in event schemas; empty if events omit the field
	help     string // description in the schemas of a feed
	eventAs  string // its name in events

	column     string       // empty if the record's own row does not have it
	rowIndex   int          // in the row's struct
	columnType reflect.Type // without the pointer of a nullable column
}

// table is the list of a record's fields, in the order of its struct.
type table struct {
	fields []field
	byName map[string]int
}

// newTable derives the table of a record from its struct and the struct of its
// row, nil if it has none.
func newTable(recordType, rowType reflect.Type) *table {
	t := &table{byName: map[string]int{}}
	for i := range recordType.NumField() {
		declared := recordType.Field(i)
		f, err := newField(declared, rowType)
		if err != nil {
			panic(fmt.Sprintf("record.%s.%s: %v", recordType.Name(), declared.Name, err))
		}
		t.byName[f.name] = i
		t.fields = append(t.fields, f)
	}
	return t
}

func newField(declared reflect.StructField, rowType reflect.Type) (f field, err error) {
	name, options, _ := strings.Cut(declared.Tag.Get("json"), ",")
	f = field{name: name, required: options == "", event: declared.Tag.Get("event")}
	f.eventAs = cmp.Or(declared.Tag.Get("eventname"), name)
	f.help = cmp.Or(declared.Tag.Get("help"), f.event)
	if name == "" {
		return f, errors.New("no name: add a json tag")
	}
	if rowType != nil && f.event != "" && declared.Tag.Get("label") == "" {
		return f, errors.New("no name for people: add a label tag")
	}
	if f.rule, err = newRule(declared.Type, declared.Tag.Get("rule")); err != nil {
		return f, err
	}
	if f.help == "" {
		return f, errors.New("no description: add a help tag, or an event tag if events show the field")
	}
	f.column = declared.Tag.Get("column")
	if rowType == nil || declared.Type.Kind() == reflect.Slice && f.column == "" {
		return f, nil
	}
	f.column = cmp.Or(f.column, name)
	column, ok := columnField(rowType, f.column)
	if !ok {
		return f, fmt.Errorf("ent.%s has no column %q: add it to ent/schema, or name another with a column tag", rowType.Name(), f.column)
	}
	f.rowIndex, f.columnType = column.Index[0], column.Type
	want := declared.Type
	if want.Kind() == reflect.Pointer && column.Type.Kind() == reflect.Pointer {
		want, f.columnType = want.Elem(), column.Type.Elem()
	}
	if want.Kind() != f.columnType.Kind() || !want.ConvertibleTo(f.columnType) {
		return f, fmt.Errorf("is a %s, but column %s of ent.%s is a %s", declared.Type, f.column, rowType.Name(), column.Type)
	}
	return f, nil
}

// columnField returns the field of a row that ent generates for a column: CanonicalURL
// for canonical_url.
func columnField(rowType reflect.Type, column string) (reflect.StructField, bool) {
	name := strings.ReplaceAll(column, "_", "")
	return rowType.FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) })
}

// Reporter receives a problem with the value at a path within a record.
type Reporter func(path, problem string)

// NewDecoder returns a decoder for one line. It accepts duplicate names, which Read
// reports.
func NewDecoder(data []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true))
}

// ErrTrailing means that a line continues after its object.
var ErrTrailing = errors.New("unexpected data after the object")

// Read reads the fields of a *Header or a Record whose type dec has already
// read. Invalid values are reported; an error means that the line is not JSON.
func Read(dec *jsontext.Decoder, rec any, report Reporter) error {
	v := reflect.ValueOf(rec).Elem()
	if err := tables[v.Type()].read(dec, v, report); err != nil {
		return err
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return ErrTrailing
	}
	if rec, ok := rec.(interface{ check(Reporter) }); ok {
		rec.check(report)
	}
	return nil
}

func (t *table) read(dec *jsontext.Decoder, rec reflect.Value, report Reporter) error {
	seen := make([]bool, len(t.fields))
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String() // the token is only valid until the next read
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		i, known := t.byName[name]
		switch {
		case !known:
			report(PrintableName(name), "is not a known field"+t.suggestion(name))
		case seen[i]:
			report(name, "is given twice; keep one of them")
		default:
			seen[i] = true
			t.fields[i].rule.read(value, rec.Field(i), func(path, problem string) { report(name+path, problem) })
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for i, f := range t.fields {
		if f.required && !seen[i] {
			report(f.name, "is required, but missing")
		}
	}
	return nil
}

// readObject reads the next value of dec, which is valid JSON, into a struct. It
// reports a value that is not an object, and returns false for it.
func (t *table) readObject(dec *jsontext.Decoder, into reflect.Value, report Reporter) bool {
	if dec.PeekKind() != '{' {
		other, _ := dec.ReadValue()
		report("", "must be an object (got "+kindName(other)+")")
		return false
	}
	_, _ = dec.ReadToken()
	_ = t.read(dec, into, func(path, problem string) { report("."+path, problem) })
	return true
}

// schema describes an object with these fields.
func (t *table) schema() Schema {
	properties, required := Schema{}, []string{}
	for _, f := range t.fields {
		if properties[f.name] = f.rule.schema; f.required {
			required = append(required, f.name)
		}
	}
	return Schema{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

// PrintableName quotes an unknown name unless it is a plain identifier.
func PrintableName(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return Quote(name)
}

func (t *table) suggestion(name string) string {
	names := make([]string, len(t.fields))
	for i, f := range t.fields {
		names[i] = f.name
	}
	if similar := text.Similar(name, names, 1); len(similar) == 1 {
		return "; did you mean " + similar[0] + "?"
	}
	if len(names) <= 2 {
		return "; use " + strings.Join(names, " or ")
	}
	return ""
}

// FieldNames returns the names of the fields that the records of a type have, in order.
func FieldNames(recordType string) (names []string) {
	fields := tables[reflect.TypeFor[Header]()]
	if recordType != TypeFeed {
		fields = tables[reflect.TypeOf(New(recordType)).Elem()]
	}
	for _, f := range fields.fields {
		names = append(names, f.name)
	}
	return names
}

// ToRow sets the columns of a new row from a record. The caller sets the primary key
// and columns that are derived from several records.
func ToRow(row ent.Mutation, rec any) {
	v := reflect.ValueOf(rec).Elem()
	for i, f := range tables[v.Type()].fields {
		value := v.Field(i)
		if value.Kind() == reflect.Pointer {
			value = value.Elem()
		}
		absent := !value.IsValid() || value.Kind() == reflect.Struct && value.IsZero() || value.Kind() == reflect.Slice && value.Len() == 0
		if f.column == "" || f.column == "id" || absent {
			continue
		}
		if err := row.SetField(f.column, value.Convert(f.columnType).Interface()); err != nil {
			panic(err) // newField has compared the types
		}
	}
}

// FromRow reads a record from its row, without the lists that are stored in other
// tables.
func FromRow[R any](row any) *R {
	rec := new(R)
	from, to := reflect.ValueOf(row).Elem(), reflect.ValueOf(rec).Elem()
	for i, f := range tables[to.Type()].fields {
		if f.column != "" {
			to.Field(i).Set(from.Field(f.rowIndex).Convert(to.Field(i).Type()))
		}
	}
	return rec
}

// Property is a property of a JSON object, with its JSON Schema.
type Property struct {
	Name    string
	Schema  Schema
	Stored  string         // its name in the journal
	Default jsontext.Value // of a field that records omit
}

// Defaults lists the fields that records of a type may omit.
func Defaults(recordType string) (optional []Property) {
	defaults := reflect.ValueOf(New(recordType)).Elem()
	for i, f := range tables[defaults.Type()].fields {
		if !f.required {
			optional = append(optional, Property{Name: f.name, Default: Encode(defaults.Field(i).Interface())})
		}
	}
	return optional
}

// EventProperties lists the fields of a record that events show.
func EventProperties[R any]() (shown []Property) {
	defaults := reflect.ValueOf(new(R))
	if rec, ok := any(new(R)).(Record); ok {
		defaults = reflect.ValueOf(New(rec.RecordType()))
	}
	for i, f := range tables[reflect.TypeFor[R]()].fields {
		if f.event == "" {
			continue
		}
		p := Property{Name: f.eventAs, Schema: maps.Clone(f.rule.schema), Stored: f.name}
		p.Schema["description"] = f.event
		if !f.required {
			p.Default = Encode(defaults.Elem().Field(i).Interface())
		}
		shown = append(shown, p)
	}
	return shown
}

// SameInEvents reports whether events would show no difference between two records.
func SameInEvents[R any](a, b *R) bool {
	one, other := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i, f := range tables[one.Type()].fields {
		if f.event != "" && !reflect.DeepEqual(one.Field(i).Interface(), other.Field(i).Interface()) {
			return false
		}
	}
	return true
}
