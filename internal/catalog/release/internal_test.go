package release

import (
	"context"
	"encoding/base64"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"palmares/ent"
	"palmares/ent/schema"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

// FuzzCursor checks that a cursor is read as it was written, and only in its list, and that
// the text in any accepted one can be stored in a database.
func FuzzCursor(f *testing.F) {
	f.Add(cursor{"tools score_desc", Place{Number: 8.5, Slug: "plume"}}.encode(), "tools score_desc", "plume", 8.5)
	f.Add(cursor{"tools", Place{Missing: true, Slug: "a\x00"}}.encode(), "tools", "é", math.Copysign(0, -1))
	f.Add("eyJsIjoieCJ9", "x", "", 1e300)
	f.Fuzz(func(t *testing.T, text, list, slug string, number float64) {
		if place, ok := decodeCursor(text, list); ok {
			again, ok := decodeCursor(cursor{list, place}.encode(), list)
			check.True(t, ok || len(text) >= maxCursorLength, "%q: got no place after writing, want %+v", text, place)
			check.True(t, !ok || again == place, "%q: got %+v after writing, want %+v", text, again, place)
			check.True(t, params.IsText(place.Text) && params.IsText(place.Slug), "%q: got %+v, want texts", text, place)
		}
		if !params.IsText(list+slug) || number != number || number-number != 0 || len(list)+len(slug) > maxCursorLength/8 {
			return
		}
		want := Place{Number: number, Slug: slug}
		written := cursor{list, want}.encode()
		place, ok := decodeCursor(written, list)
		check.Must(t, ok, true, written)
		check.Equal(t, place, want, written)
		_, ok = decodeCursor(written, list+"x")
		check.True(t, !ok, "%q: got a place in another list, want none", written)
	})
}

// FuzzSyncToken checks that an accepted sync token is the only spelling of its content, and
// that a token is read as it was issued.
func FuzzSyncToken(f *testing.F) {
	issued := SyncToken{8, 1_800_000_000_000_000, "code"}
	f.Add(issued.String(), 8, int64(1), "code")
	f.Add(issued.String()+"=", 1, int64(-1), "")
	f.Add("", 0, int64(1), "a b c")
	f.Add(base64.RawURLEncoding.EncodeToString(make([]byte, 6)), 9, int64(1), strings.Repeat("a", maxSyncToken*3/4-6-len("9 1 ")))
	f.Add("AAAA", 9, int64(1), strings.Repeat("a", maxSyncToken*3/4-5-len("9 1 ")))
	f.Add(strings.ToUpper(issued.String()), -1, int64(0), "a b")
	f.Fuzz(func(t *testing.T, text string, release int, at int64, category string) {
		if token, ok := ParseSyncToken(text); ok && (token.String() != text || token.Release < 1) {
			t.Errorf("%q: got %+v, which is %q, want the same token", text, token, token)
		}
		token := SyncToken{release, at, category}
		got, ok := ParseSyncToken(token.String())
		want := release > 0 && len(token.String()) <= maxSyncToken
		check.True(t, ok == want && (!ok || got == token), "%+v: got %+v and %t, want %t", token, got, ok, want)
	})
}

// A token of a release that is published but not loaded yet is accepted soon.
func TestTokenOfALaterRelease(t *testing.T) {
	r := &Release{Info: &ent.Release{ID: 2}}
	for newest, want := range map[int]problem.Code{2: problem.Gone, 3: problem.Unavailable, 4: problem.Unavailable} {
		_, err := r.SyncedRelease(SyncToken{3, 1, ""}.String(), "", false, func() (int, error) { return newest, nil })
		check.Equal(t, problem.Of(err).Code, want, "newest: %d", newest)
	}
	_, err := r.SyncedRelease(SyncToken{3, 1, ""}.String(), "", false, func() (int, error) { return 3, context.Canceled })
	check.Is(t, err, context.Canceled)
}

// FuzzAsOf checks that as_of selects a release number or an existing day, and nothing else.
func FuzzAsOf(f *testing.F) {
	for _, text := range []string{"8", "08", "999999999", "1000000000", "2026-11-10", "2026-02-30", "0000-01-01", "+1", "٣", "-1", "1e9", "1.5", "1 ", "2026-2-3", "2026-02", "2026-02-03T10:00:00Z", "12026-01-01", "9223372036854775808"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		asOf, err := ParseAsOf(text)
		if err != nil {
			check.Equal(t, problem.Of(err).Code, problem.BadInput, "%q: %v", text, err)
			return
		}
		_, dayErr := time.Parse(time.DateOnly, asOf.Date)
		check.Equal(t, asOf.String(), text)
		check.True(t, (asOf.Release > 0) != (asOf.Date != ""), "%q: got %+v, want a release or a day", text, asOf)
		check.True(t, asOf.Date == "" || dayErr == nil, "%q: got %+v, want a valid day", text, asOf)
	})
}

func TestCompletions(t *testing.T) {
	named := func(slug, name string) Named { return Named{Tool: &Tool{Slug: slug, Name: name}} }
	english := &Comparison{ComparisonText: &ComparisonText{Slug: "x", Title: "Plume ou Écritoire & Cie ?"}}
	english.Translations.En.Title = "Which pen?"
	c := newCompletions([]Named{
		named("porte-plume", "Porte-plume"), named("plumier", "Plumier"), named("ecritoire-cie", "Écritoire & Cie"), named("plume", "Plume"),
		{Category: &Category{Slug: "redaction", Label: "Rédaction", Translations: schema.CategoryTranslations{}}}, named("plumeau", "Plumeau"), {Comparison: english},
	})
	for typed, want := range map[string][]string{
		"PLUM":        {"plumier", "plume", "plumeau", "x", "porte-plume"},
		"plume":       {"plume", "plumeau", "x", "porte-plume"},
		"ecritoire c": {"ecritoire-cie", "x"},
		"cie":         {"ecritoire-cie", "x"},
		"rÉd":         {"redaction"},
		"pen":         {"x"},
		"p":           {"porte-plume", "plumier", "plume", "plumeau", "x"},
		"lume":        nil,
		" & ":         nil,
	} {
		var got []string
		for _, n := range c.find(typed, 8) {
			switch {
			case n.Tool != nil:
				got = append(got, n.Tool.Slug)
			case n.Category != nil:
				got = append(got, n.Category.Slug)
			default:
				got = append(got, n.Comparison.Slug)
			}
		}
		check.Slices(t, got, want, "%q", typed)
	}
	check.Equal(t, len(c.find("p", 2)), 2, "items up to a limit")
}

// Every value of a tool is taken from its row.
func TestToolsHaveTheValuesOfTheirRows(t *testing.T) {
	row := &ent.Tool{}
	fillIn(reflect.ValueOf(row).Elem())
	row.PricePeriod = "mois"
	l := &loader{texts: map[string]string{}}
	retired := reflect.ValueOf(l.tool(row)).Elem()
	row.RetiredAt = ""
	active := reflect.ValueOf(l.tool(row)).Elem()
	for _, field := range reflect.VisibleFields(active.Type()) {
		check.True(t, !active.FieldByIndex(field.Index).IsZero() || !retired.FieldByIndex(field.Index).IsZero(), "Tool.%s: got no value, want one", field.Name)
	}
}

// fillIn gives everything in a row a value, except its edges.
func fillIn(value reflect.Value) {
	switch value.Kind() {
	case reflect.String:
		value.SetString("text")
	case reflect.Int:
		value.SetInt(1)
	case reflect.Float64:
		value.SetFloat(1)
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Pointer:
		if value.Set(reflect.New(value.Type().Elem())); value.Elem().Kind() != reflect.Struct {
			fillIn(value.Elem())
		}
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
	case reflect.Struct:
		for i := range value.NumField() {
			if field := value.Field(i); field.CanSet() {
				fillIn(field)
			}
		}
	}
}
