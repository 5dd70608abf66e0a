package mcp

import (
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"
)

// arrangeComparison omits what a comparison of two tools does not have.
func arrangeComparison(body json.RawMessage) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	if string(fields["c"]) == "null" {
		for _, name := range []string{"c", "published_ac", "published_bc"} {
			delete(fields, name)
		}
	}
	return jsonv2.Marshal(fields, jsonv2.Deterministic(true))
}
