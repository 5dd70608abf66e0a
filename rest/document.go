package rest

import (
	"bytes"
	"encoding/json"
)

// object is a JSON object whose members stay in the order they were given, so
// that people who read the document find fields as the interface lists them.
type object []member

type member struct {
	name  string
	value any
}

// add appends a member.
func (o *object) add(name string, value any) { *o = append(*o, member{name, value}) }

// has tells whether there is a member of that name.
func (o object) has(name string) bool {
	for _, m := range o {
		if m.name == name {
			return true
		}
	}
	return false
}

// MarshalJSON is called by encoding/json.
func (o object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		name, err := encode(m.name)
		if err != nil {
			return nil, err
		}
		value, err := encode(m.value)
		if err != nil {
			return nil, err
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// encode escapes nothing that need not be.
func encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimRight(out.Bytes(), "\n"), err
}
