package graph_test

import (
	"strings"
	"testing"

	"palmares/graph"
	"palmares/graph/document"
)

// Malformed dates would be ignored.
func TestDatesOfDeprecatedFields(t *testing.T) {
	for _, definition := range graph.Schema().Types {
		for _, field := range definition.Fields {
			directive := field.Directives.ForName("deprecated")
			if directive == nil || directive.Arguments.ForName("reason") == nil {
				continue
			}
			reason := strings.ToLower(directive.Arguments.ForName("reason").Value.Raw)
			if (strings.Contains(reason, "since") || strings.Contains(reason, "removed on")) && document.DeprecationOf(field) == nil {
				t.Errorf("%s.%s: got no dates from %q, want some", definition.Name, field.Name, reason)
			}
		}
	}
}
