package graph

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph/model"
	"palmares/internal/catalog/record"
	"palmares/internal/catalog/release"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// newFilledTool returns a tool in which everything has a value.
func newFilledTool() *release.Tool {
	t := &release.Tool{}
	values := reflect.ValueOf(t).Elem()
	for i := range values.NumField() {
		if value := values.Field(i); value.CanSet() {
			fillIn(value)
		}
	}
	t.ICP = "mixte"
	return t
}

func fillIn(field reflect.Value) {
	switch field.Kind() {
	case reflect.String:
		field.SetString("text")
	case reflect.Int:
		field.SetInt(1)
	case reflect.Float64:
		field.SetFloat(1)
	case reflect.Bool:
		field.SetBool(true)
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
	}
}

// Every field of Tool and RetiredTool that is stored with the tool gets its value.
func TestToolsHaveValues(t *testing.T) {
	var view model.View
	filled := []*release.Tool{newFilledTool()}
	for name, object := range map[string]any{"Tool": view.Tools(filled)[0], "RetiredTool": view.RetiredTools(filled)[0]} {
		for _, field := range Schema().Types[name].Fields {
			isField := func(of string) bool { return strings.EqualFold(of, field.Name) }
			value := reflect.ValueOf(object).Elem().FieldByNameFunc(isField)
			for i := range reflect.TypeOf(object).NumMethod() {
				if method := reflect.ValueOf(object).Method(i); isField(reflect.TypeOf(object).Method(i).Name) && method.Type().NumIn() == 0 {
					value = reflect.Value{}
					if Schema().Types[field.Type.Name()].IsLeafType() {
						value = method.Call(nil)[0]
					}
				}
			}
			check.True(t, !value.IsValid() || !value.IsZero(), "%s.%s: got no value, want one", name, field.Name)
		}
	}
}

// The program does not start if the schema has an order or a metric that tools do not
// have.
func TestOrdersAndMetricsAreCheckedAtStartup(t *testing.T) {
	check.Equal(t, checkFields(Schema()), nil)
	extended := *Schema()
	sort := *extended.Types["ToolSort"]
	sort.EnumValues = append(slices.Clone(sort.EnumValues), &ast.EnumValueDefinition{Name: "weight_asc"})
	metric := *extended.Types["SeriesMetric"]
	metric.EnumValues = append(slices.Clone(metric.EnumValues), &ast.EnumValueDefinition{Name: "mean_weight"})
	group := *extended.Types["ToolGroup"]
	group.Fields = append(slices.Clone(group.Fields), &ast.FieldDefinition{Name: "p99Score", Type: ast.NamedType("Float", nil)})
	extended.Types = map[string]*ast.Definition{"ToolSort": &sort, "SeriesMetric": &metric, "ToolGroup": &group, "ToolGroupOrder": Schema().Types["ToolGroupOrder"]}
	err, want := checkFields(&extended), "tools have no field for the order weight_asc\ntools have no metric mean_weight\ntools have no metric p99Score"
	check.Equal(t, fmt.Sprint(err), want)
}

// Every field of ToolFilter has a condition.
func TestFiltersHaveConditions(t *testing.T) {
	empty := check.Try(release.NewCatalog(testkit.Open(t, testkit.SQLite(t)), slog.New(slog.DiscardHandler), 0, nil).Load(t.Context())).OK(t)
	r := newReader(nil, empty, AsOf{}, nil)
	for i, field := range reflect.VisibleFields(reflect.TypeFor[model.ToolFilter]()) {
		filter := &model.ToolFilter{}
		value := reflect.ValueOf(filter).Elem().Field(i)
		if value.Kind() == reflect.Slice {
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
			value = value.Index(0)
		}
		fillIn(value)
		if value.Kind() == reflect.Pointer {
			fillIn(value.Elem())
		}
		if filter.PriceIncreases != nil {
			filter.PriceIncreases.Min = 1
		}
		conditions, err := r.toolFilter(filter)
		if err != nil || len(conditions) != 1 {
			t.Errorf("%s: got %d conditions and %v, want one", field.Name, len(conditions), err)
			continue
		}
		conditions.Matches(newFilledTool()) // a field that tools do not have would panic
	}
}

// Every field of a record is in the schema, under its own name.
func TestSchemaHasEveryField(t *testing.T) {
	// These have another name, or readers do not see them.
	others := map[string]string{"comparatif.tool_a": "toolA", "comparatif.published": "", "tool.sections": "embeddings"}
	for recordType, name := range map[string]string{
		record.TypeCategory: "Category", record.TypeTool: "Tool", record.TypeComparison: "Comparison", record.TypeRetired: "RetiredTool",
	} {
		for _, field := range record.FieldNames(recordType) {
			if field == "translations" { // an argument of the fields that have some
				continue
			}
			want, listed := others[recordType+"."+field]
			if !listed {
				for i, word := range strings.Split(field, "_") {
					if i > 0 {
						word = strings.ToUpper(word[:1]) + word[1:]
					}
					want += word
				}
			}
			definition := Schema().Types[name]
			check.True(t, want == "" || definition.Fields.ForName(want) != nil, "graph/schema: got no field %s.%s, want the field %s of records", name, want, field)
		}
	}
}
