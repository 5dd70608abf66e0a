package check_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

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
		{"is an error", func(t testing.TB) { check.Fails(t, errors.New("no disk")) }, "", false},
		{"is no error", func(t testing.TB) { check.Fails(t, nil, "row %d", 3) }, "row 3: got no error", false},
		{"kind", func(t testing.TB) { check.Is(t, fmt.Errorf("%w: disk", errors.ErrUnsupported), errors.ErrUnsupported) }, "", false},
		{"other kind", func(t testing.TB) { check.Is(t, errors.New("full"), errors.ErrUnsupported) }, "got full, want unsupported operation", false},
		{"result", func(t testing.TB) { check.Equal(t, check.Try(strconv.Atoi("3")).OK(t), 3) }, "", false},
		{"no result", func(t testing.TB) { check.Try(strconv.Atoi("x")).OK(t, "row %d", 3) }, `row 3: strconv.Atoi: parsing "x": invalid syntax`, true},
		{"unexpected result", func(t testing.TB) { check.Try(strconv.Atoi("3")).Fails(t, "row %d", 3) }, "row 3: got no error", false},
		{"result of a kind", func(t testing.TB) { check.Try(strconv.Atoi("x")).Is(t, strconv.ErrSyntax) }, "", false},
		{"result of another kind", func(t testing.TB) { check.Try(strconv.Atoi("x")).Is(t, strconv.ErrRange) }, "want value out of range", false},
		{"holds", func(t testing.TB) { check.True(t, true, "got %d", 3) }, "", false},
		{"does not hold", func(t testing.TB) { check.True(t, false, "got %d, want fewer", 3) }, "got 3, want fewer", false},
		{"must hold", func(t testing.TB) { check.MustTrue(t, false, "got %d, want fewer", 3) }, "got 3, want fewer", true},
		{"equal maps", func(t testing.TB) { check.DeepEqual(t, map[int]int{1: 2}, map[int]int{1: 2}) }, "", false},
		{"maps", func(t testing.TB) { check.DeepEqual(t, map[int]int{1: 2}, map[int]int{1: 3}) }, "got map[1:2], want map[1:3]", false},
		{"nil and no list", func(t testing.TB) { check.DeepEqual(t, []int{}, []int(nil)) }, "got (-) and want (+) differ", false},
		{"no part", func(t testing.TB) { check.Lacks(t, "plume", "x") }, "", false},
		{"wrong part", func(t testing.TB) { check.Lacks(t, "plume", "u", "slug") }, `slug: got "plume" (5 bytes), want it not to contain "u"`, false},
		{"part", func(t testing.TB) { check.Contains(t, "plume", "x", "slug") }, `slug: got "plume" (5 bytes), want it to contain "x"`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ended := true
			got := testkit.Failures(t, func(t testing.TB) {
				c.check(t)
				ended = false
			})
			if (len(got) == 1) != (c.want != "") || !strings.Contains(strings.Join(got, ""), c.want) || ended != c.ends {
				t.Errorf("got %q, which ends the test: %v, want %q, %v", got, ended, c.want, c.ends)
			}
		})
	}
}
