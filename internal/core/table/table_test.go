package table

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"palmares/internal/dev/check"
)

func TestCSVRows(t *testing.T) {
	for _, c := range []struct{ item, standard, excelFR string }{
		{`{"a":"x","b":1,"c":{"d":true}}`, "x,1,true", "x;1;true"},
		{`{"a":null,"b":null,"c":null}`, ",,", ";;"},
		{`{"c":{"d":"last"},"a":"first"}`, "first,,last", "first;;last"},
		{`{"a":"","b":-8.5,"c":{"d":1e-7}}`, `"",-8.5,1e-7`, `"";-8,5;1e-7`},
		{`{"a":"x,y","b":"x;y","c":{"d":"x\"y"}}`, `"x,y",x;y,"x""y"`, `x,y;"x;y";"x""y"`},
		{`{"a":"x\ny","b":"x\r\ny","c":{"d":" x "}}`, "\"x\ny\",\"x\r\ny\",\" x \"", "\"x\ny\";\"x\r\ny\";\" x \""},
		{`{"a":"=1+1","b":"+1","c":{"d":"-1"}}`, "'=1+1,'+1,'-1", "'=1+1;'+1;'-1"},
		{`{"a":"@x","b":"\tx","c":{"d":"\rx"}}`, "'@x,'\tx,\"'\rx\"", "'@x;'\tx;\"'\rx\""},
		{`{"a":"1=1","b":"x-y","c":{"d":"é 😀 €"}}`, "1=1,x-y,é 😀 €", "1=1;x-y;é 😀 €"},
		{`{"a":"=\"x\"","b":"8.5","c":{"d":["x",1]}}`, `"'=""x""",8.5,"[""x"",1]"`, `"'=""x""";8.5;"[""x"",1]"`},
	} {
		for dialect, want := range map[string]string{"": c.standard, Excel: c.standard, ExcelFR: c.excelFR} {
			var out strings.Builder
			columns := []string{"a", "b", "c.d"}
			check.OK(t, newItemReader(columns, nil, NewWriter(&out, columns, dialect).WriteCells).read(jsontext.Value(c.item)))
			check.Equal(t, out.String(), want+"\r\n", "%s, dialect %q", c.item, dialect)
		}
	}
	for dialect, want := range map[string]string{"": "a,c.d\r\n", Excel: "\uFEFFa,c.d\r\n", ExcelFR: "\uFEFFa;c.d\r\n"} {
		var out strings.Builder
		check.OK(t, NewWriter(&out, []string{"a", "c.d"}, dialect).WriteHeader(), "dialect %q", dialect)
		check.Equal(t, out.String(), want, "dialect %q", dialect)
	}
}

func TestRowWriter(t *testing.T) {
	cells := []jsontext.Value{jsontext.Value(`"a,b"`), nil, jsontext.Value(`["x"]`), jsontext.Value(`1.5`)}
	for format, want := range map[string]string{
		CSV: "a,b.c,d,e\r\n\"a,b\",,\"[\"\"x\"\"]\",1.5\r\n", NDJSON: `{"a":"a,b","b.c":null,"d":["x"],"e":1.5}` + "\n",
	} {
		var out strings.Builder
		write, err := NewRowWriter(&out, format, "", []string{"a", "b.c", "d", "e"})
		if err == nil {
			err = write(cells)
		}
		check.OK(t, err, format)
		check.Equal(t, out.String(), want, format)
	}
}

// columns returns the positions of names, from the first on.
func columns(first int, names ...string) *Level {
	l := &Level{Columns: map[string]int{}, First: first}
	for i, name := range names {
		l.Columns[name] = first + i
	}
	return l
}

func (l *Level) with(inner *Level, lists ...string) *Level {
	l.Inner, l.Lists, l.ListColumn = inner, lists, inner.First-1
	return l
}

func rowsOf(each func(use func([]jsontext.Value) error) error) string {
	var rows []string
	if err := each(func(cells []jsontext.Value) error {
		var row []string
		for _, cell := range cells {
			row = append(row, string(cell))
		}
		rows = append(rows, strings.Join(row, "|"))
		return nil
	}); err != nil {
		rows = append(rows, err.Error())
	}
	return strings.Join(rows, " ")
}

func TestRows(t *testing.T) {
	flat := &Shape{Columns: []string{"a", "b.c"}, Root: columns(0, "a", "b.c")}
	values := &Shape{Columns: []string{"v"}, Root: columns(0, "")}
	page := &Shape{Columns: []string{"total", "slug"}, Root: columns(0, "meta.total").with(columns(1, "slug"), "items")}
	deep := &Shape{Columns: []string{"a", "b", "c"}, Root: columns(0, "a").with(columns(1, "b").with(columns(2, "c"), "z"), "x.y")}
	stacked := &Shape{Columns: []string{"a", "list", "b"}, Root: columns(0, "a").with(columns(2, "b"), "x", "y.z")}
	for _, c := range []struct {
		shape      *Shape
		body, want string
	}{
		{flat, `[{"a":1,"b":{"c":"x"}},{"a":null,"b":null},null,{"b":{"c":[1,"y"]}}]`, `1|"x" | | |[1,"y"]`},
		{flat, `{"b":{"d":1,"c":{"e":1}},"a":2}`, `2|{"e":1}`},
		{flat, `[]`, ``},
		{flat, `null`, `|`},
		{values, `[1,"x",null]`, `1 "x" `},
		// Values that follow the list are repeated too.
		{page, `{"items":[{"slug":"a"},{"slug":"b"}],"meta":{"total":7}}`, `7|"a" 7|"b"`},
		{page, `{"meta":{"total":0},"items":[]}`, ``},
		{page, `{"meta":{"total":0},"items":null}`, ``},
		{page, `null`, ``},
		// No element of an outer list is lost.
		{deep, `[{"a":1,"x":{"y":[{"b":2,"z":[{"c":3},{"c":4}]},{"b":5,"z":[]}]}},{"a":6,"x":null},{"x":{"y":[{"z":[{}]}]}}]`, `1|2|3 1|2|4 1|5| 6|| ||`},
		{stacked, `{"a":1,"y":{"z":[{"b":2}]},"x":[{"b":3},{}]}`, `1|"y.z"|2 1|"x"|3 1|"x"|`},
		{stacked, `[{"a":1,"y":{"z":[]},"x":[]},{"a":2}]`, `1|| 2||`},
	} {
		check.Equal(t, rowsOf(func(use func([]jsontext.Value) error) error { return c.shape.Rows(jsontext.Value(c.body), use) }), c.want, c.body)
	}
	for _, body := range []string{``, `[`, `[{"a":1`, `[{"a":1]`} {
		check.Fails(t, deep.Rows(jsontext.Value(body), func([]jsontext.Value) error { return nil }), body)
	}
}

func TestPivot(t *testing.T) {
	s := &Shape{
		Columns: []string{"metric", "key", "period", "value"}, Pivot: &Pivot{Name: 0, Value: 3},
		Root: columns(0, "metric", "key").with(columns(2, "period", "value"), "points"),
	}
	names := []string{"count", "mean", "none"}
	check.Equal(t, strings.Join(s.PivotColumns(names), " "), "key period count mean none", "columns")
	for body, want := range map[string]string{
		`[]`: ``,
		`[{"metric":"count","key":"a","points":[{"period":"1","value":1},{"period":"2","value":2}]},
		  {"metric":"count","key":"b","points":[{"period":"1","value":3}]},
		  {"metric":"mean","key":"a","points":[{"period":"2","value":null},{"period":"1","value":0.5},{"period":"3","value":9}]}]`: //
		`"a"|"1"|1|0.5| "a"|"2"|2|| "b"|"1"|3|| "a"|"3"||9|`,
		// Nothing is lost if the periods are not selected.
		`[{"metric":"count","points":[{"value":1},{"value":2}]},{"metric":"mean","points":[{"value":3}]}]`: `||1|3| ||2||`,
	} {
		check.Equal(t, rowsOf(func(use func([]jsontext.Value) error) error { return s.PivotRows(jsontext.Value(body), names, use) }), want, body)
	}
}
