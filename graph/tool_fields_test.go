package graph

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph/document"
	"palmares/graph/generated"
	"palmares/graph/model"
	"palmares/internal/catalog/release"
)

// newFilledTool returns a tool in which everything has a value.
func newFilledTool() *release.Tool {
	t := &release.Tool{Details: &release.Details{}}
	for _, values := range []reflect.Value{reflect.ValueOf(t).Elem(), reflect.ValueOf(t.Details).Elem()} {
		for i := range values.NumField() {
			if value := values.Field(i); value.CanSet() && value.Type() != reflect.TypeFor[*release.Details]() {
				fillIn(value)
			}
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
func TestToolsAreConverted(t *testing.T) {
	filled, empty := newTool(newFilledTool()), newTool(&release.Tool{Details: &release.Details{}})
	for _, name := range generated.PlainToolFields {
		if name == "id" || slices.Contains(document.ReviewFields, name) { // set only if it is selected
			continue
		}
		field := []graphql.CollectedField{{Field: &ast.Field{Name: name, Alias: name}}}
		got := string(generated.AppendTool(nil, field, &filled))
		if got == string(generated.AppendTool(nil, field, &empty)) || strings.Contains(got, "null") {
			t.Errorf("Tool.%s: got %s, want a value", name, got)
		}
	}
	retired := reflect.ValueOf(newRetired(newFilledTool())).Elem()
	for _, field := range Schema().Types["RetiredTool"].Fields {
		i := slices.IndexFunc(reflect.VisibleFields(retired.Type()), func(f reflect.StructField) bool {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return name == field.Name
		})
		if Schema().Types[field.Type.Name()].IsLeafType() && field.Name != "id" && retired.Field(i).IsZero() {
			t.Errorf("RetiredTool.%s: got no value, want one", field.Name)
		}
	}
}

// The program does not start if the schema has a filter, an order or a metric that tools
// do not have.
func TestFiltersAndOrdersAreCheckedAtStartup(t *testing.T) {
	if err := checkFields(Schema()); err != nil {
		t.Errorf("got %v, want no error", err)
	}
	extended := *Schema()
	sort := *extended.Types["ToolSort"]
	sort.EnumValues = append(slices.Clone(sort.EnumValues), &ast.EnumValueDefinition{Name: "weight_asc"})
	metric := *extended.Types["SeriesMetric"]
	metric.EnumValues = append(slices.Clone(metric.EnumValues), &ast.EnumValueDefinition{Name: "mean_weight"})
	group := *extended.Types["ToolGroup"]
	group.Fields = append(slices.Clone(group.Fields), &ast.FieldDefinition{Name: "p99Score", Type: ast.NamedType("Float", nil)})
	extended.Types = map[string]*ast.Definition{"ToolSort": &sort, "SeriesMetric": &metric, "ToolGroup": &group}
	if err, want := checkFields(&extended), "tools have no field for the order weight_asc\ntools have no metric mean_weight\ntools have no metric p99Score"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	names := filterNames
	defer func() { filterNames = names }()
	filterNames = slices.Clone(names)
	filterNames[slices.Index(names, "scoreMin")] = "weightMin"
	if err := checkFields(Schema()); err == nil || !strings.Contains(err.Error(), "weightMin") {
		t.Errorf("got %v, want an error about weightMin", err)
	}
	if _, err := toolConditions(&model.ToolFilter{ScoreMin: new(float64)}); err == nil {
		t.Error("got no error for an unknown condition, want one")
	}
}
