package params

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

var testParams = []Param{
	{Name: "limit", Kind: "Int", Min: 1, Max: 200, Default: int64(50)},
	{Name: "score_min", Kind: "Float"},
	{Name: "sort", Kind: "Sort", Values: []string{"name_asc", "name_desc"}},
	{Name: "q", Kind: "String"},
	{Name: "since", Kind: "Date"},
	{Name: "id", Kind: "String", Pattern: regexp.MustCompile("^n_[0-9]$"), Form: "an id, such as n_1"},
	{Name: "kinds", Kind: "Kind", Values: []string{"a", "b", "c"}, List: true},
	{Name: "n", Kind: "Int", Min: 1, Max: 9, Repeats: true},
	{Name: "deep", Kind: "Boolean"},
	{Name: "note", Kind: "String", Max: 250},
}

func TestRead(t *testing.T) {
	const broken = "q contains an invalid escape, a NUL character or invalid UTF-8."
	long := strings.Repeat("é", 300)
	for _, c := range []struct{ query, strict, form string }{ // strict and form are the values or the error
		{"", "map[]", "map[]"},
		{"&&", "map[]", "map[]"},
		{"limit=1", "map[limit:1]", "map[limit:1]"},
		{"limit=0200", "map[limit:200]", "map[limit:200]"},
		{"other=%20x&limit=3", "map[limit:3]", "map[limit:3]"},
		{"limit=abc", `limit must be an integer from 1 to 200 (got "abc").`, `limit must be an integer from 1 to 200 (got "abc").`},
		{"limit=0", `limit must be an integer from 1 to 200 (got "0").`, `limit must be an integer from 1 to 200 (got "0").`},
		{"limit=201", `limit must be an integer from 1 to 200 (got "201").`, `limit must be an integer from 1 to 200 (got "201").`},
		{"limit=%2B5", `limit must be an integer from 1 to 200 (got "+5").`, `limit must be an integer from 1 to 200 (got "+5").`},
		{"limit=1_0", `limit must be an integer from 1 to 200 (got "1_0").`, `limit must be an integer from 1 to 200 (got "1_0").`},
		{"limit=%D9%A3", `limit must be an integer from 1 to 200 (got "٣").`, `limit must be an integer from 1 to 200 (got "٣").`},
		{"limit=1.0", `limit must be an integer from 1 to 200 (got "1.0").`, `limit must be an integer from 1 to 200 (got "1.0").`},
		{"limit=99999999999999999999", `limit must be an integer from 1 to 200 (got "99999999999999999999").`, `limit must be an integer from 1 to 200 (got "99999999999999999999").`},
		{"limit=", `limit must be an integer from 1 to 200 (got "").`, "map[]"},
		{"limit", `limit must be an integer from 1 to 200 (got "").`, "map[]"},
		{"limit=1&limit=2", "limit must not be given more than once.", "map[limit:1]"},
		{"score_min=7.50", "map[score_min:7.5]", "map[score_min:7.5]"},
		{"score_min=-0", "map[score_min:0]", "map[score_min:0]"},
		{"score_min=7,5", `score_min must be a decimal number, such as 7.5 (got "7,5").`, "map[score_min:7.5]"},
		{"score_min=.5", `score_min must be a decimal number, such as 7.5 (got ".5").`, `score_min must be a decimal number, such as 7.5 (got ".5").`},
		{"score_min=1_0", `score_min must be a decimal number, such as 7.5 (got "1_0").`, `score_min must be a decimal number, such as 7.5 (got "1_0").`},
		{"score_min=-Inf", `score_min must be a decimal number, such as 7.5 (got "-Inf").`, `score_min must be a decimal number, such as 7.5 (got "-Inf").`},
		{"score_min=0x1p4", `score_min must be a decimal number, such as 7.5 (got "0x1p4").`, `score_min must be a decimal number, such as 7.5 (got "0x1p4").`},
		{"score_min=1e999", `score_min must be a decimal number, such as 7.5 (got "1e999").`, `score_min must be a decimal number, such as 7.5 (got "1e999").`},
		{"sort=name_asc", "map[sort:name_asc]", "map[sort:name_asc]"},
		{"sort=NAME_ASC", `sort must be one of name_asc, name_desc (got "NAME_ASC").`, `sort must be one of name_asc, name_desc (got "NAME_ASC").`},
		{"sort=" + long, `sort must be one of name_asc, name_desc (got "` + strings.Repeat("é", 64) + `…").`, `sort must be one of name_asc, name_desc (got "` + strings.Repeat("é", 64) + `…").`},
		{"q=+a+b+", "map[q: a b ]", "map[q:a b]"},
		{"q=", "q must not be empty.", "map[]"},
		{"q=" + long, "map[q:" + strings.Repeat("é", 201) + "]", "map[q:" + strings.Repeat("é", 201) + "]"},
		{"since=2026-02-28", "map[since:2026-02-28]", "map[since:2026-02-28]"},
		{"since=2026-02-30", `since must be a valid date in the form YYYY-MM-DD (got "2026-02-30").`, `since must be a valid date in the form YYYY-MM-DD (got "2026-02-30").`},
		{"since=0000-01-01", `since must be a valid date in the form YYYY-MM-DD (got "0000-01-01").`, `since must be a valid date in the form YYYY-MM-DD (got "0000-01-01").`},
		{"id=n_1", "map[id:n_1]", "map[id:n_1]"},
		{"id=n_12", `id must be an id, such as n_1 (got "n_12").`, `id must be an id, such as n_1 (got "n_12").`},
		{"kinds=c,a&kinds=a", "map[kinds:[a c]]", "map[kinds:[a c]]"},
		{"kinds=a,", `kinds must be one or more of a, b, c (got "").`, `kinds must be one or more of a, b, c (got "").`},
		{"kinds=a&kinds=d", `kinds must be one or more of a, b, c (got "d").`, `kinds must be one or more of a, b, c (got "d").`},
		{"n=2&q=x&n=1&n=2", "map[n:[2 1 2] q:x]", "map[n:[2 1 2] q:x]"},
		{"n=2&n=0", `n must be an integer from 1 to 9 (got "0").`, `n must be an integer from 1 to 9 (got "0").`},
		{"n=2&n=", `n must be an integer from 1 to 9 (got "").`, "map[n:[2]]"},
		{"deep=true", "map[deep:true]", "map[deep:true]"},
		{"deep=1", `deep must be true or false (got "1").`, `deep must be true or false (got "1").`},
		{"note=" + long[:500], "map[note:" + long[:500] + "]", "map[note:" + long[:500] + "]"},
		{"note=" + long, "note must have at most 250 characters.", "note must have at most 250 characters."},
		{"q=%zz", broken, broken},
		{"q=%00", broken, broken},
		{"q=%ff", broken, broken},
		{"%ff=1", "The query string" + broken[1:], "The query string" + broken[1:]},
	} {
		for form, want := range map[bool]string{false: c.strict, true: c.form} {
			values, err := read(c.query, testParams, form)
			if err != nil {
				p := (*problem.Problem)(nil)
				check.MustTrue(t, errors.As(err, &p), "%.40q, form %t: got %v, want %s", c.query, form, err, want)
				check.Equal(t, p.Code, problem.BadInput, "%.40q, form %t", c.query, form)
				check.Equal(t, p.Message, want, "%.40q, form %t", c.query, form)
				first, _, _ := strings.Cut(want, " ")
				check.Equal(t, p.Param, strings.TrimPrefix(first, "The"), "%.40q, form %t", c.query, form)
				continue
			}
			check.Equal(t, fmt.Sprint(values), want, "%.40q, form %t", c.query, form)
		}
	}
}

func TestCheckRange(t *testing.T) {
	for value, ok := range map[int]bool{0: false, 1: true, 200: true, 201: false} {
		err := CheckRange("limit", value, 1, 200)
		check.Equal(t, ok, (err == nil), "%d: %v", value, err)
	}
	check.Equal(t, problem.Of(CheckRange("limit", -3, 1, 200)).Message, "limit must be an integer from 1 to 200 (got -3).")
}

func TestFormat(t *testing.T) {
	for want, value := range map[string]any{"50": int64(50), "7.5": 7.5, "7": 7.0, "a b": "a b"} {
		check.Equal(t, Format(value), want)
	}
}

func TestFromVariable(t *testing.T) {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: `enum Sort {a b} type Query {f(n: Int, s: Sort, q: String): Int}`})
	document, err := gqlparser.LoadQueryWithRules(schema, `query ($n: Int! = 5, $s: Sort = b, $q: String) {f(n: $n, s: $s, q: $q)}`, nil)
	check.MustTrue(t, err == nil, "got %v", err)
	var got []Param
	for _, v := range document.Operations[0].VariableDefinitions {
		got = append(got, FromVariable(v))
	}
	want := []Param{
		{Name: "n", Kind: "Int", Min: math.MinInt32, Max: math.MaxInt32, Default: int64(5)},
		{Name: "s", Kind: "Sort", Values: []string{"a", "b"}, Min: math.MinInt32, Max: math.MaxInt32, Default: "b"},
		{Name: "q", Kind: "String", Min: math.MinInt32, Max: math.MaxInt32},
	}
	check.DeepEqual(t, got, want)
}

func TestResolveDate(t *testing.T) {
	for relative, want := range map[string]string{
		"latest": "2026-08-31", "previous": "2026-07-01", "-1d": "2026-08-30", "-30d": "2026-08-01", "-6m": "2026-02-28", "-1m": "2026-07-31",
		"-12m": "2025-08-31", "-1y": "2025-08-31", "-30m": "2024-02-29",
	} {
		check.Equal(t, IsRelativeDate(relative), true, relative)
		check.Equal(t, ResolveDate(relative, "2026-08-31", "2026-07-01"), want, relative)
	}
	for _, text := range []string{"", "-", "6m", "-0d", "-6w", "-06m", "-10000d", "latest ", "2026-08-31"} {
		check.Equal(t, IsRelativeDate(text), false, text)
	}
}

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
