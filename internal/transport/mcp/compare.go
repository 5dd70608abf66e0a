package mcp

import (
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"
)

// retiredPrefix is that of the fields with a tool in case that it is retired.
const retiredPrefix = "retired_"

// arrangeComparison puts retired tools in the place of active ones, and omits what a
// comparison of two tools does not have.
func arrangeComparison(body json.RawMessage) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	for _, name := range []string{"a", "b", "c"} {
		if string(fields[name]) == "null" {
			fields[name] = fields[retiredPrefix+name]
		}
		delete(fields, retiredPrefix+name)
	}
	if string(fields["c"]) == "null" {
		for _, name := range []string{"c", "published_ac", "published_bc"} {
			delete(fields, name)
		}
	}
	return jsonv2.Marshal(fields, jsonv2.Deterministic(true))
}
