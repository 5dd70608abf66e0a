package params

import (
	"testing"

	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

// FuzzForm checks that what a form or a strict query string sets is read again from its
// canonical form, which both read in the same way.
func FuzzForm(f *testing.F) {
	for _, query := range []string{"limit=007&q=+a+", "score_min=7,5&sort=name_asc", "kinds=b,a&kinds=c", "n=1&n=2", "since=2026-11-10&deep=true", "q=%ff", "id=n_1&q=&q=x"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for name, read := range map[string]func(string, []Param) (map[string]any, error){"form": ReadForm, "strict": Read} {
			values, err := read(query, testParams)
			if err != nil {
				p := problem.Of(err)
				check.Equal(t, p.Code, problem.BadInput, "%s %q", name, query)
				check.True(t, p.Message != "", "%s %q: got %v, want a 400", name, query, err)
				continue
			}
			canonical := Canonical(testParams, values)
			again, err := Read(canonical, testParams)
			if values["limit"] == int64(50) { // the default, which a canonical form leaves out
				delete(values, "limit")
			}
			check.OK(t, err, "%s %q", name, query)
			check.DeepEqual(t, again, values, "%s %q: from %q", name, query, canonical)
		}
	})
}
