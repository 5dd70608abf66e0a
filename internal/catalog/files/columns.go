package files

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/parquet-go/parquet-go"

	"palmares/ent"
	"palmares/internal/catalog/pricing"
	"palmares/internal/catalog/record"
)

// column is a column of a table, in Parquet files and in catalog.sqlite.
type column struct {
	name       string
	kind       reflect.Type // of its values: string, float64, int32, bool or Date
	null, dict bool         // dict is for texts that many rows share
}

// row has the values of a table's columns, which are nil where they are null.
type row []any

// Date is a day, as Parquet counts them: from 1970-01-01.
type Date int32

// String formats the day as YYYY-MM-DD.
func (d Date) String() string { return time.Unix(int64(d)*86400, 0).UTC().Format(time.DateOnly) }

// dateOf parses a day that an import has checked.
func dateOf(day string) Date {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return 0
	}
	return Date(t.Unix() / 86400)
}

// declared returns the columns that the tags of a struct declare. Those of pointers may be
// null.
func declared[Row any]() (columns []column) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Row]()) {
		name, options, _ := strings.Cut(f.Tag.Get("column"), ",")
		c := column{name: name, kind: f.Type, dict: options == "dict"}
		if f.Type.Kind() == reflect.Pointer {
			c.kind, c.null = f.Type.Elem(), true
		}
		columns = append(columns, c)
	}
	return columns
}

// valuesOf returns the values of such a struct.
func valuesOf(of any) row {
	fields := reflect.ValueOf(of)
	values := make(row, fields.NumField())
	for i := range values {
		values[i] = valueOf(fields.Field(i))
	}
	return values
}

func valueOf(field reflect.Value) any {
	if field.Kind() != reflect.Pointer {
		return field.Interface()
	}
	if field.IsNil() {
		return nil
	}
	return field.Elem().Interface()
}

// schemaOf returns the schema of a Parquet file.
func schemaOf(columns []column) *parquet.Schema {
	fields := make([]reflect.StructField, len(columns))
	for i, c := range columns {
		tag, kind := c.name, c.kind
		if kind == reflect.TypeFor[Date]() {
			tag += ",date"
		}
		if c.dict {
			tag += ",dict"
		}
		if c.null {
			tag, kind = tag+",optional", reflect.PointerTo(kind)
		}
		fields[i] = reflect.StructField{Name: fmt.Sprint("Column", i), Type: kind, Tag: reflect.StructTag(fmt.Sprintf("parquet:%q", tag))}
	}
	return parquet.SchemaOf(reflect.New(reflect.StructOf(fields)).Interface())
}

// toParquet appends the values of a row to another one, which the writer does not keep.
func (r row) toParquet(columns []column, to parquet.Row) parquet.Row {
	for i, value := range r {
		level := 0
		if columns[i].null && value != nil {
			level = 1
		}
		to = append(to, parquet.ValueOf(value).Level(0, level, i))
	}
	return to
}

// toSQL replaces the values of a row by what its SQLite column stores.
func (r row) toSQL(values []any) {
	for i, value := range r {
		if day, ok := value.(Date); ok {
			value = day.String()
		}
		values[i] = value
	}
}

// converter reads the columns of a table from rows of the database. Those of the record's
// fields are derived from it; the others are computed.
type converter[Stored any] struct {
	columns []column
	read    func(*Stored) row
}

// computed is a column that no field has, after another column.
type computed[Stored any] struct {
	after string
	column
	value func(*Stored) any
}

var (
	tools = convert[record.Tool]([]computed[ent.Tool]{
		{"price", column{"price_amount", reflect.TypeFor[float64](), false, false}, func(t *ent.Tool) any { return t.PriceAmount }},
		{"price_amount", column{"price_period", reflect.TypeFor[string](), false, true}, func(t *ent.Tool) any { return t.PricePeriod }},
		{"price_period", column{"billing_period", reflect.TypeFor[string](), false, true}, func(t *ent.Tool) any { return pricing.Period(t.PricePeriod) }},
		{"billing_period", column{"monthly_price", reflect.TypeFor[float64](), true, false}, func(t *ent.Tool) any {
			return orNil(number(pricing.Monthly(t.PriceAmount, pricing.Period(t.PricePeriod))))
		}},
		{"mainstream", column{"has_embeddings", reflect.TypeFor[bool](), false, false}, func(t *ent.Tool) any { return t.InEmbeddings }},
	})
	retired    = convert[record.Retired, ent.Tool](nil)
	categories = convert[record.Category]([]computed[ent.Category]{
		{"label_en", column{"tool_count", reflect.TypeFor[int32](), false, false}, func(c *ent.Category) any { return int32(c.ToolCount) }}, //nolint:gosec // fits into memory
		{"tool_count", column{"avg_score", reflect.TypeFor[float64](), true, false}, func(c *ent.Category) any { return orNil(c.AvgScore) }},
	})
	comparisons = convert[record.Comparison, ent.Comparison](nil)
)

func orNil(value *float64) any {
	if value == nil {
		return nil
	}
	return *value
}

// convert derives a converter from the fields of a record.
func convert[R, Stored any](more []computed[Stored]) converter[Stored] {
	type part struct {
		column
		value func(*Stored, reflect.Value) any // of the row, and of the record that it stores
	}
	var all []part
	for i, f := range reflect.VisibleFields(reflect.TypeFor[R]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch c := newColumn(name, f); {
		case slices.Contains(withoutColumn, name):
		case c.kind != nil:
			all = append(all, part{c, func(_ *Stored, rec reflect.Value) any { return fieldValue(c, rec.Field(i)) }})
		case name == "translations":
			texts := f.Type.Field(0)
			for j, text := range reflect.VisibleFields(texts.Type) {
				base, _, _ := strings.Cut(text.Tag.Get("json"), ",")
				c := column{base + "_" + strings.ToLower(texts.Name), reflect.TypeFor[string](), true, false}
				all = append(all, part{c, func(_ *Stored, rec reflect.Value) any { return fieldValue(c, rec.Field(i).Field(0).Field(j)) }})
			}
		default:
			panic("files: no column for the " + f.Type.String() + " " + reflect.TypeFor[R]().Name() + "." + f.Name)
		}
	}
	for _, c := range more {
		at := 1 + slices.IndexFunc(all, func(p part) bool { return p.name == c.after })
		all = slices.Insert(all, at, part{c.column, func(row *Stored, _ reflect.Value) any { return c.value(row) }})
	}
	columns := make([]column, len(all))
	for i, s := range all {
		columns[i] = s.column
	}
	return converter[Stored]{columns, func(stored *Stored) row {
		rec, values := reflect.ValueOf(record.FromRow[R](stored)).Elem(), make(row, len(all))
		for i, s := range all {
			values[i] = s.value(stored, rec)
		}
		return values
	}}
}

// withoutColumn are the lists that are tables of their own, and what is true of all rows.
var withoutColumn = []string{"sections", "price_history", "published"}

// columnNames are the names of columns that do not have that of the feed's field.
var columnNames = map[string]string{"category": "category_slug", "icp": "icp_code", "tool_a": "tool_a_slug", "tool_b": "tool_b_slug", "winner": "winner_slug"}

// newColumn returns the column of a field, without a kind if there is none. Lists that a
// row stores are JSON.
func newColumn(name string, f reflect.StructField) column {
	c := column{name: name, dict: slices.Contains([]string{"category", "icp", "pricing", "price", "reason"}, name)}
	if other, ok := columnNames[name]; ok {
		c.name = other
	}
	kind := f.Type
	if kind.Kind() == reflect.Pointer {
		kind, c.null = kind.Elem(), true
	}
	switch {
	case f.Tag.Get("rule") == "date":
		c.kind = reflect.TypeFor[Date]()
	case kind.Kind() == reflect.Slice && f.Tag.Get("column") != "":
		c.kind, c.null = reflect.TypeFor[string](), true
	default:
		c.kind = map[reflect.Kind]reflect.Type{
			reflect.String: reflect.TypeFor[string](), reflect.Float64: reflect.TypeFor[float64](), reflect.Bool: reflect.TypeFor[bool](), reflect.Int: reflect.TypeFor[int32](),
		}[kind.Kind()]
	}
	return c
}

// fieldValue returns the value of a record's field in a column.
func fieldValue(c column, field reflect.Value) any {
	value := field
	if field.Kind() == reflect.Pointer {
		value = field.Elem()
	}
	if c.null && field.IsZero() {
		return nil
	}
	switch value.Kind() {
	case reflect.Slice:
		text, err := json.Marshal(value.Interface())
		if err != nil {
			panic(err) // the database has checked it
		}
		return string(text)
	case reflect.Int:
		return int32(value.Int()) //nolint:gosec // a rule limits it
	case reflect.Float64:
		return value.Float()
	case reflect.Bool:
		return value.Bool()
	}
	if c.kind == reflect.TypeFor[Date]() {
		return dateOf(value.String())
	}
	return value.String()
}

// ends are columns of the history, beside those of tools and retired tools and a hash of
// the review. An active tool has no values of a retired one, and the other way round.
var ends = []column{
	{"first_release", reflect.TypeFor[int32](), false, false},
	{"last_release", reflect.TypeFor[int32](), true, false}, // null if the release of the file has this version
	{"first_date", reflect.TypeFor[Date](), false, false},
	{"last_date", reflect.TypeFor[Date](), true, false},
	{"active", reflect.TypeFor[bool](), false, false},
}

const firstRelease, lastRelease, firstDate, lastDate, active = 1, 2, 3, 4, 5 // after the slug

func historyColumns() []column {
	columns := append(slices.Clone(tools.columns[:1]), ends...)
	for _, c := range tools.columns[1:] {
		c.null = c.null || indexOf(retired.columns, c.name) < 0
		columns = append(columns, c)
	}
	columns = append(columns, column{"review_hash", reflect.TypeFor[string](), true, false})
	for _, c := range retired.columns {
		if indexOf(tools.columns, c.name) < 0 {
			c.null = true
			columns = append(columns, c)
		}
	}
	return columns
}

func indexOf(columns []column, name string) int {
	return slices.IndexFunc(columns, func(c column) bool { return c.name == name })
}

// placesOf returns the places of other columns in the history.
func placesOf(columns []column) (places []int) {
	for _, c := range columns {
		places = append(places, indexOf(historyTable.columns, c.name))
	}
	return places
}

var toolPlaces, retiredPlaces, hashPlace = placesOf(tools.columns), placesOf(retired.columns), indexOf(historyTable.columns, "review_hash")
