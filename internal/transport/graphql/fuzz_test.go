package graphql

import (
	"encoding/json"
	"net/url"
	"palmares/internal/dev/check"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzQueryString checks that a GET and a POST with the same members are the same request, or
// are both rejected.
func FuzzQueryString(f *testing.F) {
	f.Add("{feed {release}}", "", `{"n":1}`, `{"persistedQuery":{"version":1,"sha256Hash":"x"}}`)
	f.Add("", "A", `null`, `{}`)
	f.Add("query A {feed {release}}", "A", `{"a":1,"a":2}`, `[]`)
	f.Add("{a}", "é", `{"n":1e400}{}`, ` {"a":9223372036854775808}`)
	f.Fuzz(func(t *testing.T, query, operation, variables, extensions string) {
		if !utf8.ValidString(query + operation + variables + extensions) {
			return
		}
		values, members := url.Values{}, []string{}
		add := func(name, value string, raw bool) {
			values.Set(name, value)
			if !raw {
				text, _ := json.Marshal(value)
				value = string(text)
			}
			if value != "" && value != `""` {
				members = append(members, `"`+name+`":`+value)
			}
		}
		add("query", query, false)
		add("operationName", operation, false)
		add("variables", variables, true)
		add("extensions", extensions, true)
		got, gotProblem := parseQueryString(values.Encode())
		// Values that are not JSON by themselves can be together with their neighbors.
		if variables != "" && checkJSON("", variables) != nil || extensions != "" && checkJSON("", extensions) != nil {
			check.MustTrue(t, gotProblem != nil, "%q and %q: got %+v, want a 400", variables, extensions, got)
			check.Equal(t, gotProblem.status, 400, "%q and %q: %+v", variables, extensions, got)
			return
		}
		want, wantProblem := parseBody("{" + strings.Join(members, ",") + "}")
		check.True(t, (gotProblem == nil) == (wantProblem == nil) && (gotProblem != nil || reflect.DeepEqual(got, want)),
			"%v: got %+v and %v as a query string, want %+v and %v as in a body", values, got, gotProblem, want, wantProblem)
	})
}
