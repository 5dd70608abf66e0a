package check_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"palmares/internal/dev/check"
)

// recorder keeps what a test reports.
type recorder struct {
	testing.TB
	errors, fatal []string
}

func (r *recorder) Helper()           {}
func (r *recorder) Error(args ...any) { r.errors = append(r.errors, fmt.Sprint(args...)) }
func (r *recorder) Fatal(args ...any) { r.fatal = append(r.fatal, fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestChecks(t *testing.T) {
	type pair struct {
		Name   string
		secret string
	}
	long := strings.Repeat("x", 1000)
	for _, c := range []struct {
		name  string
		check func(t testing.TB)
		want  string // of the report; empty if there is none
		ends  bool
	}{
		{"no error", func(t testing.TB) { check.OK(t, nil) }, "", false},
		{"error", func(t testing.TB) { check.OK(t, errors.New("no disk"), "row %d", 3) }, "row 3: no disk", true},
		{"equal", func(t testing.TB) { check.Equal(t, 1, 1) }, "", false},
		{"numbers", func(t testing.TB) { check.Equal(t, 1, 2, "rows") }, "rows: got 1, want 2", false},
		{"must", func(t testing.TB) { check.Must(t, "a", "b") }, `got "a", want "b"`, true},
		{"texts", func(t testing.TB) { check.Equal(t, long+"a", long+"b") }, "differ at byte 1000", false},
		{"structs", func(t testing.TB) { check.Equal(t, pair{long, "a"}, pair{long, "b"}) }, `secret: "a"`, false},
		{"pointers", func(t testing.TB) { check.Equal(t, &pair{}, &pair{}) }, "want", false},
		{"lists", func(t testing.TB) { check.Slices(t, []string{"a"}, []string{"a", "b"}) }, `got ["a"], want ["a" "b"]`, false},
		{"equal lists", func(t testing.TB) { check.Slices(t, []string{}, nil) }, "", false},
		{"part", func(t testing.TB) { check.Contains(t, "plume", "x", "slug") }, `slug: got "plume" (5 bytes), want it to contain "x"`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &recorder{}
			c.check(r)
			got, count := strings.Join(append(r.errors, r.fatal...), ""), len(r.errors)+len(r.fatal)
			if (count == 1) != (c.want != "") || !strings.Contains(got, c.want) || (len(r.fatal) > 0) != c.ends {
				t.Errorf("got %q (%d reports, %d of them end the test), want %q", got, count, len(r.fatal), c.want)
			}
		})
	}
}
