package graph

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/ent"
	"palmares/ent/tool"
	"palmares/graph/model"
)

// toolFields declares the fields of Tool: the stored columns that each field is
// made of, and how its value gets from the row to the model. A field with
// subfields has no set function, only the columns that it is looked up by.
// NewExecutor checks that no field of the schema is missing.
var toolFields = newFieldTable("Tool", []toolField[model.Tool]{
	{"slug", []string{tool.FieldID}, func(t *model.Tool, row *ent.Tool) { t.Slug = row.ID }},
	{"name", []string{tool.FieldName}, func(t *model.Tool, row *ent.Tool) { t.Name = row.Name }},
	{"domain", []string{tool.FieldDomain}, func(t *model.Tool, row *ent.Tool) { t.Domain = row.Domain }},
	{"categorySlug", []string{tool.FieldCategorySlug}, func(t *model.Tool, row *ent.Tool) { t.CategorySlug = row.CategorySlug }},
	{"icp", []string{tool.FieldIcp}, func(t *model.Tool, row *ent.Tool) { t.Icp = model.Icp(strings.ReplaceAll(string(row.Icp), "-", "_")) }},
	{"icpCode", []string{tool.FieldIcp}, func(t *model.Tool, row *ent.Tool) { t.IcpCode = string(row.Icp) }},
	{"pricing", []string{tool.FieldPricing}, func(t *model.Tool, row *ent.Tool) { t.Pricing = model.Pricing(row.Pricing) }},
	{"price", []string{tool.FieldPrice}, func(t *model.Tool, row *ent.Tool) { t.Price = row.Price }},
	{"priceAmount", []string{tool.FieldPriceAmount}, func(t *model.Tool, row *ent.Tool) { t.PriceAmount = row.PriceAmount }},
	{"pricePeriod", []string{tool.FieldPricePeriod}, func(t *model.Tool, row *ent.Tool) { t.PricePeriod = row.PricePeriod }},
	{"score", []string{tool.FieldScore}, func(t *model.Tool, row *ent.Tool) { t.Score = row.Score }},
	{"verifiability", []string{tool.FieldVerifiability}, func(t *model.Tool, row *ent.Tool) { t.Verifiability = row.Verifiability }},
	{"obsolescence", []string{tool.FieldObsolescence}, func(t *model.Tool, row *ent.Tool) { t.Obsolescence = row.Obsolescence }},
	{"tagline", []string{tool.FieldTagline}, func(t *model.Tool, row *ent.Tool) { t.Tagline = row.Tagline }},
	{"canonicalUrl", []string{tool.FieldCanonicalURL}, func(t *model.Tool, row *ent.Tool) { t.CanonicalURL = row.CanonicalURL }},
	{"avisUrl", []string{tool.FieldAvisURL}, func(t *model.Tool, row *ent.Tool) { t.AvisURL = row.AvisURL }},
	{"alternativesUrl", []string{tool.FieldAlternativesURL}, func(t *model.Tool, row *ent.Tool) { t.AlternativesURL = row.AlternativesURL }},
	{"updatedAt", []string{tool.FieldUpdatedAt}, func(t *model.Tool, row *ent.Tool) { t.UpdatedAt = row.UpdatedAt }},
	{"tier", []string{tool.FieldTier}, func(t *model.Tool, row *ent.Tool) { t.Tier = row.Tier }},
	{"mainstream", []string{tool.FieldMainstream}, func(t *model.Tool, row *ent.Tool) { t.Mainstream = row.Mainstream }},
	{"category", []string{tool.FieldCategorySlug}, nil},
	{"history", []string{tool.FieldPricing, tool.FieldPrice, tool.FieldScore, tool.FieldUpdatedAt}, nil},
	{"embeddings", []string{
		tool.FieldName, tool.FieldCategorySlug, tool.FieldScore, tool.FieldVerifiability, tool.FieldCanonicalURL,
		tool.FieldAvisURL, tool.FieldUpdatedAt, tool.FieldInEmbeddings, tool.FieldSectionsHash,
	}, nil},
})

// retiredFields declares the fields of RetiredTool.
var retiredFields = newFieldTable("RetiredTool", []toolField[model.RetiredTool]{
	{"slug", []string{tool.FieldID}, func(t *model.RetiredTool, row *ent.Tool) { t.Slug = row.ID }},
	{"name", []string{tool.FieldName}, func(t *model.RetiredTool, row *ent.Tool) { t.Name = row.Name }},
	{"score", []string{tool.FieldScore}, func(t *model.RetiredTool, row *ent.Tool) { t.Score = row.Score }},
	{"categorySlug", []string{tool.FieldCategorySlug}, func(t *model.RetiredTool, row *ent.Tool) { t.CategorySlug = row.CategorySlug }},
	{"reason", []string{tool.FieldRetiredReason}, func(t *model.RetiredTool, row *ent.Tool) { t.Reason = model.RetirementReason(row.RetiredReason) }},
	{"retiredAt", []string{tool.FieldRetiredAt}, func(t *model.RetiredTool, row *ent.Tool) { t.RetiredAt = row.RetiredAt }},
	{"note", []string{tool.FieldRetiredNote}, func(t *model.RetiredTool, row *ent.Tool) { t.Note = row.RetiredNote }},
	{"category", []string{tool.FieldCategorySlug}, nil},
})

// toolField is a field of a GraphQL type that is stored as a row of tools.
type toolField[Model any] struct {
	name    string
	columns []string
	set     func(*Model, *ent.Tool)
}

type fieldTable[Model any] struct {
	typeName string
	fields   []toolField[Model]
	columns  map[string][]string // by field
}

func newFieldTable[Model any](typeName string, fields []toolField[Model]) *fieldTable[Model] {
	t := &fieldTable[Model]{typeName: typeName, fields: fields, columns: map[string][]string{}}
	for _, field := range fields {
		t.columns[field.name] = field.columns
	}
	return t
}

// check compares the table with the schema and with the stored columns.
func (t *fieldTable[Model]) check(schema *ast.Schema) error {
	var errs []error
	definition := schema.Types[t.typeName]
	for _, field := range definition.Fields {
		declared := slices.ContainsFunc(t.fields, func(f toolField[Model]) bool { return f.name == field.Name && f.set != nil })
		if schema.Types[field.Type.Name()].IsLeafType() && !declared {
			errs = append(errs, fmt.Errorf("field %s.%s has no entry in graph/tool_fields.go", t.typeName, field.Name))
		}
	}
	for _, field := range t.fields {
		if definition.Fields.ForName(field.name) == nil {
			errs = append(errs, fmt.Errorf("graph/tool_fields.go declares %s.%s, which is not in the schema", t.typeName, field.name))
		}
		for _, column := range field.columns {
			if _, ok := toolColumns[column]; !ok {
				errs = append(errs, fmt.Errorf("field %s.%s: tools has no column %q that can be scanned", t.typeName, field.name, column))
			}
		}
	}
	return errors.Join(errs...)
}

// columnsFor returns the columns to read for a selection, each once.
func (t *fieldTable[Model]) columnsFor(s selection, additional ...string) []string {
	columns := append([]string{tool.FieldID}, additional...)
	for _, field := range s.fields() {
		columns = append(columns, t.columns[field.Name]...)
	}
	slices.Sort(columns)
	return slices.Compact(columns)
}

// models converts rows. Fields whose columns were not read stay zero.
func (t *fieldTable[Model]) models(rows []*ent.Tool) []*Model {
	return mapSlice(rows, func(row *ent.Tool) *Model {
		m := new(Model)
		for _, field := range t.fields {
			if field.set != nil {
				field.set(m, row)
			}
		}
		return m
	})
}

// toolColumns maps each column that can be scanned to its field of ent.Tool.
var toolColumns = func() map[string]int {
	columns := map[string]int{}
	for i := range reflect.TypeFor[ent.Tool]().NumField() {
		field := reflect.TypeFor[ent.Tool]().Field(i)
		column, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Name == "ID" {
			column = tool.FieldID
		}
		switch field.Type.Kind() {
		case reflect.String, reflect.Int, reflect.Float64, reflect.Bool, reflect.Pointer:
			if tool.ValidColumn(column) {
				columns[column] = i
			}
		}
	}
	return columns
}()

// scanTargets returns where database/sql puts the columns of a row. This is
// twice as fast as ent's own scanning, and tools are most of what is read.
func scanTargets(row *ent.Tool, columns []string) []any {
	value := reflect.ValueOf(row).Elem()
	return mapSlice(columns, func(column string) any {
		field := value.Field(toolColumns[column])
		switch field.Kind() {
		case reflect.String: // also enums
			return textOrEmpty{field.Addr().Convert(reflect.TypeFor[*string]()).Interface().(*string)}
		case reflect.Int:
			return numberOrZero[int]{field.Addr().Interface().(*int)}
		case reflect.Float64:
			return numberOrZero[float64]{field.Addr().Interface().(*float64)}
		}
		return field.Addr().Interface()
	})
}

// toolPosition returns the position of a tool in an order.
func toolPosition(o order, row *ent.Tool) []any {
	value := reflect.ValueOf(row).Elem()
	return mapSlice(o, func(key orderKey) any {
		field := value.Field(toolColumns[key.column])
		if field.Kind() == reflect.Pointer {
			if field.IsNil() {
				return nil
			}
			field = field.Elem()
		}
		return field.Interface()
	})
}

// textOrEmpty scans text that is null for either active or retired tools.
type textOrEmpty struct{ text *string }

func (t textOrEmpty) Scan(value any) error {
	switch v := value.(type) {
	case string:
		*t.text = v
	case []byte:
		*t.text = string(v)
	case nil:
		*t.text = ""
	default:
		return fmt.Errorf("got %T, want text", value)
	}
	return nil
}

// numberOrZero scans a number that is null for retired tools.
type numberOrZero[N int | float64] struct{ number *N }

func (n numberOrZero[N]) Scan(value any) error {
	var number sql.Null[N]
	err := number.Scan(value)
	*n.number = number.V
	return err
}
