package table

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
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
		for excelFR, want := range map[bool]string{false: c.standard, true: c.excelFR} {
			var out strings.Builder
			if err := NewWriter(&out, []string{"a", "b", "c.d"}, excelFR).WriteRow(jsontext.Value(c.item)); err != nil {
				t.Fatal(err)
			}
			if out.String() != want+"\r\n" {
				t.Errorf("%s, excel-fr %t: got %q, want %q", c.item, excelFR, out.String(), want+"\r\n")
			}
		}
	}
	var out strings.Builder
	if err := NewWriter(&out, []string{"a", "c.d"}, true).WriteHeader(); err != nil || out.String() != "\uFEFFa;c.d\r\n" {
		t.Errorf("got header %q and %v, want a byte order mark and the columns", out.String(), err)
	}
}
