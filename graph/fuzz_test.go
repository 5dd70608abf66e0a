package graph

import (
	"testing"
	"time"

	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

// FuzzAsOf checks that as_of selects a release number or an existing day, and nothing else.
func FuzzAsOf(f *testing.F) {
	for _, text := range []string{"8", "08", "999999999", "1000000000", "2026-11-10", "2026-02-30", "0000-01-01", "+1", "٣"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		asOf, err := ParseAsOf(text)
		if err != nil {
			check.Equal(t, problem.Of(err).Code, problem.BadInput, "%q: %v", text, err)
			return
		}
		_, dayErr := time.Parse(time.DateOnly, asOf.Date)
		if asOf.String() != text || (asOf.Release > 0) == (asOf.Date != "") || asOf.Date != "" && dayErr != nil {
			t.Errorf("%q: got %+v, want a release or a day", text, asOf)
		}
	})
}
