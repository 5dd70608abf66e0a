package graph

import (
	"reflect"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/graph/model"
	"palmares/internal/catalog/release"
)

// A field that is missing from tool_fields.go stops the server before it accepts
// requests, with an error that names the field.
func TestToolFieldsAreCheckedAtStartup(t *testing.T) {
	if err := toolFields.check(Schema()); err != nil {
		t.Errorf("Tool: got %v, want no error", err)
	}
	if err := retiredFields.check(Schema()); err != nil {
		t.Errorf("RetiredTool: got %v, want no error", err)
	}
	extended := *Schema()
	extended.Types = map[string]*ast.Definition{}
	for name, definition := range Schema().Types {
		copied := *definition
		extended.Types[name] = &copied
	}
	unusedName := &ast.FieldDefinition{Name: "unusedName", Type: ast.NonNullNamedType("String", nil)}
	extended.Types["Tool"].Fields = append(extended.Types["Tool"].Fields[:0:0], append(extended.Types["Tool"].Fields, unusedName)...)
	wantError(t, "field without an entry", toolFields.check(&extended), "Tool.unusedName")

	set := func(*model.Tool, *release.Tool) {}
	complete := toolFields.fields
	with := func(field toolField[model.Tool]) fieldTable[model.Tool] {
		return fieldTable[model.Tool]{"Tool", append(complete[:len(complete):len(complete)], field)}
	}
	wantError(t, "entry that is not in the schema", with(toolField[model.Tool]{"unusedName", set}).check(Schema()), "Tool.unusedName")
	if err := with(toolField[model.Tool]{"unusedName", set}).check(&extended); err != nil {
		t.Errorf("complete table: got %v, want no error", err)
	}
}

func wantError(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want an error with %q", what, err, want)
	}
}

// Each entry sets its own field of the model.
func TestToolFieldsSetTheirOwnField(t *testing.T) {
	checkSetters(t, toolFields)
	checkSetters(t, retiredFields)
}

func checkSetters[Model any](t *testing.T, table fieldTable[Model]) {
	for _, field := range table.fields {
		if field.name == "id" { // set only if it is selected
			continue
		}
		tool := &release.Tool{Details: &release.Details{}}
		for _, values := range []reflect.Value{reflect.ValueOf(tool).Elem(), reflect.ValueOf(tool.Details).Elem()} {
			for i := range values.NumField() {
				if value := values.Field(i); value.CanSet() && value.Type() != reflect.TypeFor[*release.Details]() {
					fillIn(value)
				}
			}
		}
		tool.ICP = "mixte"
		m := new(Model)
		field.set(m, tool)
		value := reflect.ValueOf(m).Elem()
		for i := range value.NumField() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			if got, want := !value.Field(i).IsZero(), name == field.name; got != want {
				t.Errorf("%s.%s: got %s set: %t, want %t", table.typeName, field.name, name, got, want)
			}
		}
	}
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
