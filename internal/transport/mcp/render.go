package mcp

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// render writes JSON as compact text: a line for each value, and a table for each
// list of objects, so that names are not repeated.
func render(data []byte) string {
	var out strings.Builder
	writeValue(&out, "", data)
	return out.String()
}

func writeValue(out *strings.Builder, name string, value jsontext.Value) {
	switch value.Kind() {
	case '{':
		prefix := name
		if prefix != "" {
			prefix += "."
		}
		for _, m := range members(value) {
			writeValue(out, prefix+m.name, m.value)
		}
	case '[':
		items := members(value)
		if len(items) > 0 && items[0].value.Kind() == '{' {
			writeTable(out, name, items)
			return
		}
		fallthrough
	default:
		out.WriteString(name + ": " + cell(value) + "\n")
	}
}

func writeTable(out *strings.Builder, name string, rows []member) {
	for i, row := range rows {
		var names, cells []string
		for _, m := range members(row.value) {
			names, cells = append(names, m.name), append(cells, cell(m.value))
		}
		if i == 0 {
			out.WriteString(name + ":\n" + strings.Join(names, " | ") + "\n")
		}
		out.WriteString(strings.Join(cells, " | ") + "\n")
	}
}

// cell writes a value on one line.
func cell(value jsontext.Value) string {
	switch value.Kind() {
	case 'n':
		return "-"
	case '"':
		words, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			return string(value)
		}
		return strings.Join(strings.Fields(string(words)), " ")
	}
	return string(value)
}

// member is a member of an object or, without a name, an item of a list.
type member struct {
	name  string
	value jsontext.Value
}

// members reads the members of an object in order, or the items of a list.
func members(value jsontext.Value) (all []member) {
	decoder := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true))
	_, err := decoder.ReadToken()
	for err == nil && decoder.PeekKind() != '}' && decoder.PeekKind() != ']' {
		var m member
		if value.Kind() == '{' {
			var name jsontext.Token
			if name, err = decoder.ReadToken(); err != nil {
				break
			}
			m.name = name.String()
		}
		var raw jsontext.Value
		if raw, err = decoder.ReadValue(); err == nil {
			m.value = raw.Clone()
			all = append(all, m)
		}
	}
	return all
}
