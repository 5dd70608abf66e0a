package rest

import (
	"maps"
	"testing"
)

// FuzzArguments: what is accepted prints back to a canonical query, which
// stands for the same and prints as itself. Nothing else happens.
func FuzzArguments(f *testing.F) {
	endpoints, _, err := buildEndpoints()
	if err != nil {
		f.Fatal(err)
	}
	for _, query := range []string{
		"", "page=2&limit=10", "sort=name_asc&category=code", "score_min=-0&obsolescence_max=1e21", "category=%C3%A9+%26", "limit=%30%37",
		"page=1&page=1", "page=", "%ff", "&&=&", "reason=mort;x", "score_min=1e-320",
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, e := range endpoints {
			variables, wrong := readArguments(e.arguments, query)
			if wrong != nil {
				if wrong.Code.Status() != 400 || wrong.Message == "" {
					t.Errorf("%s?%q: %d %s", e.path, query, wrong.Code.Status(), wrong.Message)
				}
				continue
			}
			printed := canonical(e.arguments, variables)
			again, wrong := readArguments(e.arguments, printed)
			if wrong != nil || !maps.Equal(variables, again) || canonical(e.arguments, again) != printed {
				t.Errorf("%s?%q: %v prints as %q, which is %v (%v)", e.path, query, variables, printed, again, wrong)
			}
		}
	})
}
