package release

import (
	"reflect"
	"testing"

	"palmares/ent"
)

// Every value of a tool is taken from its row.
func TestToolsHaveTheValuesOfTheirRows(t *testing.T) {
	row := &ent.Tool{}
	fillIn(reflect.ValueOf(row).Elem())
	row.PricePeriod = "mois"
	l := &loader{texts: map[string]string{}}
	retired := reflect.ValueOf(l.tool(row)).Elem()
	row.RetiredAt = ""
	active := reflect.ValueOf(l.tool(row)).Elem()
	for _, field := range reflect.VisibleFields(active.Type()) {
		if active.FieldByIndex(field.Index).IsZero() && retired.FieldByIndex(field.Index).IsZero() {
			t.Errorf("Tool.%s: got no value, want one", field.Name)
		}
	}
}

// fillIn gives everything in a row a value, except its edges.
func fillIn(value reflect.Value) {
	switch value.Kind() {
	case reflect.String:
		value.SetString("text")
	case reflect.Int:
		value.SetInt(1)
	case reflect.Float64:
		value.SetFloat(1)
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Pointer:
		if value.Set(reflect.New(value.Type().Elem())); value.Elem().Kind() != reflect.Struct {
			fillIn(value.Elem())
		}
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
	case reflect.Struct:
		for i := range value.NumField() {
			if field := value.Field(i); field.CanSet() {
				fillIn(field)
			}
		}
	}
}
