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
