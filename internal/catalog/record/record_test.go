package record

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"palmares/ent"
	"palmares/ent/category"
	"palmares/ent/comparison"
	"palmares/ent/pricechange"
	"palmares/ent/section"
	"palmares/ent/tool"
	"palmares/internal/dev/check"
)

// An invalid declaration panics at startup with a message that names the field.
func TestInvalidDeclarations(t *testing.T) {
	for _, c := range []struct {
		declared any
		want     string
	}{
		{struct {
			Motto string `json:"motto" rule:"text" help:"A motto."`
		}{}, `Motto: ent.Tool has no column "motto"`},
		{struct {
			Name string `json:"name" rule:"haiku"`
		}{}, `Name: there is no rule "haiku" for a string`},
		{struct {
			Score *float64 `json:"score,omitzero" rule:"high"`
		}{}, `Score: there is no rule "high" for a float64`},
		{struct {
			Name string `rule:"text"`
		}{}, `Name: no name: add a json tag`},
		{struct {
			Price int `json:"price" rule:"0..10" help:"A price."`
		}{}, `Price: is a int, but column price of ent.Tool is a string`},
		{struct {
			Domain *string `json:"domain" rule:"text" help:"A domain."`
		}{}, `Domain: is a *string, but column domain of ent.Tool is a string`},
		{struct {
			Name string `json:"name" rule:"text"`
		}{}, `Name: no description: add a help tag`},
		{struct {
			Name string `json:"name" rule:"text" event:"A name."`
		}{}, `Name: no name for people: add a label tag`},
		{struct {
			Sources []Section `json:"sources" column:"sources" help:"Its sources."`
		}{}, `Sources: is a []record.Section, but column sources of ent.Tool is a []schema.Source`},
	} {
		got := ""
		func() {
			defer func() { got = fmt.Sprint(recover()) }()
			newTable(reflect.TypeOf(c.declared), reflect.TypeFor[ent.Tool]())
		}()
		check.Contains(t, got, c.want)
	}
}

// A column added to ent/schema needs a field, or it would always be empty, and a field
// needs a column, or rows could not be written.
func TestEveryColumnHasAField(t *testing.T) {
	for row, c := range map[reflect.Type]struct {
		columns []string
		derived []string // columns that an import sets without a field of their own
		records []reflect.Type
	}{
		reflect.TypeFor[ent.Tool](): {tool.Columns, []string{
			tool.FieldNameKey, tool.FieldPriceAmount, tool.FieldPricePeriod, tool.FieldSectionsHash, tool.FieldHistoryHash,
			tool.FieldInEmbeddings, tool.FieldFingerprint, tool.FieldSinceRelease,
		}, []reflect.Type{reflect.TypeFor[Tool](), reflect.TypeFor[Retired]()}},
		reflect.TypeFor[ent.Category](): {category.Columns, []string{
			category.FieldToolCount, category.FieldAvgScore, category.FieldFingerprint, category.FieldSinceRelease,
		}, []reflect.Type{reflect.TypeFor[Category]()}},
		reflect.TypeFor[ent.Comparison](): {comparison.Columns, []string{
			comparison.FieldFingerprint, comparison.FieldSinceRelease,
		}, []reflect.Type{reflect.TypeFor[Comparison]()}},
		reflect.TypeFor[ent.Section](): {section.Columns, []string{
			section.FieldToolSlug, section.FieldPosition, section.FieldSinceRelease,
		}, []reflect.Type{reflect.TypeFor[Section]()}},
		reflect.TypeFor[ent.PriceChange](): {pricechange.Columns, []string{
			pricechange.FieldToolSlug, pricechange.FieldDigest, pricechange.FieldSinceRelease,
		}, []reflect.Type{reflect.TypeFor[PriceChange]()}},
	} {
		var stored []string
		for _, rec := range c.records {
			for _, f := range tables[rec].fields {
				if f.column == "" || f.column == "id" { // ent's name for the primary key
					continue
				}
				stored = append(stored, f.column)
				check.True(t, slices.Contains(c.columns, f.column), "%v.%s: got column %s, want one of %v", rec, f.name, f.column, c.columns)
			}
		}
		for _, column := range c.columns[1:] { // after the primary key
			check.True(t, slices.Contains(c.derived, column) || slices.Contains(stored, column), "column %s of %v: got no field, want one in %v", column, row, c.records)
		}
	}
}

// The fingerprints of stored records must not change, or the next import would
// rewrite the whole catalog.
func TestFingerprint(t *testing.T) {
	score := 7.5
	tool := &Tool{
		Slug: "a", Name: "Outil a", Domain: "a.example", Category: "code", ICP: "mixte", Pricing: "payant", Price: "20 €/mois",
		Score: &score, Tagline: "Un outil.", CanonicalURL: "https://palmares.example/a", AlternativesURL: "https://palmares.example/alt/a",
		UpdatedAt: "2026-11-01", Tier: 3, Sections: []Section{{Section: "verdict", Text: "Bien."}},
	}
	check.Equal(t, Fingerprint(tool), "4fd78a17cf044e6612bc1ec84f4c19cb")
	translated, sourced := *tool, *tool
	translated.Translations.En.Tagline = "A tool."
	sourced.Sources = []Source{{Field: "price", URL: "https://a.example/prix", CheckedAt: "2026-11-02"}}
	for rec, want := range map[*Tool]string{&translated: "42aaf1f28a9cd65b79afcdea11be4f79", &sourced: "8497ade1961934f420b5bb8cd031230f"} {
		if got := Fingerprint(rec); got != want {
			t.Errorf("%s: got %s, want %s", Summary(rec), got, want)
		}
	}
}

func TestSectionsHash(t *testing.T) {
	got := SectionsHash([]Section{{"verdict", "Bien."}, {"prix", "Juste."}})
	// printf 'verdict\0Bien.\0prix\0Juste.\0' | sha256sum
	check.Equal(t, got, "sha256-3167db5b924ab0cb35705ef1a3c9a7883b5d9b5d6403d33423c378780ee17658")
}

// Problems with translations and sources have the path of the value, which reports of
// other formats use to find its line.
func TestPathsOfProblems(t *testing.T) {
	read := func(recordType, fields string) (Record, []string) {
		rec, dec := New(recordType), NewDecoder([]byte("{"+fields+"}"))
		_, _ = dec.ReadToken()
		var problems []string
		check.OK(t, Read(dec, rec, func(path, problem string) {
			if strings.HasPrefix(path, "translations") || strings.HasPrefix(path, "sources") {
				problems = append(problems, path+": "+problem)
			}
		}), fields)
		return rec, problems
	}
	const prices, date = `"url":"https://a.example/prix"`, `"checked_at":"2026-11-02"`
	for _, c := range []struct {
		recordType, fields string
		want               []string
	}{
		{TypeCategory, `"translations":{"en":{"label":"Code"}}`, nil},
		{TypeCategory, `"translations":{"en":{}}`, nil},
		{TypeCategory, `"translations":[]`, []string{"translations: must be an object (got an array)"}},
		{TypeCategory, `"translations":null`, []string{"translations: must be an object (got null)"}},
		{TypeCategory, `"translations":{"en":"Code"}`, []string{"translations.en: must be an object (got a string)"}},
		{TypeCategory, `"translations":{"de":{"label":"Code"}}`, []string{"translations.de: is not a known field; use en"}},
		{TypeCategory, `"translations":{"en":{"label":" \t"}}`, []string{"translations.en.label: must not be blank"}},
		{TypeCategory, `"translations":{"en":{"label":"a","label":"b"}}`, []string{"translations.en.label: is given twice; keep one of them"}},
		{TypeTool, `"translations":{"en":{"tagline":1}}`, []string{"translations.en.tagline: must be a string (got a number); put it in quotation marks"}},
		{TypeTool, `"translations":{"en":{"tagline":false}}`, []string{"translations.en.tagline: must be a string (got false); put it in quotation marks"}},
		{TypeTool, `"translations":{"en":{"taglin":"x"}}`, []string{"translations.en.taglin: is not a known field; did you mean tagline?"}},
		{TypeTool, `"translations":{"en":{"tagline":"a\u0000"}}`, []string{"translations.en.tagline: must not contain a NUL character"}},
		{TypeComparison, `"translations":{"en":{"verdict":"x"}}`, []string{"translations.en.verdict: is not a known field; use title or winner_note"}},
		{TypeRetired, `"translations":{"en":{}}`, []string{"translations: is not a known field"}},
		{TypeRetired, `"sources":[]`, []string{"sources: is not a known field"}},
		{TypeCategory, `"sources":[]`, []string{"sources: is not a known field"}},

		{TypeTool, `"sources":[]`, nil},
		{TypeTool, `"sources":[{"field":"price",` + prices + `,` + date + `},{"field":"pricing",` + prices + `,` + date + `}]`, nil},
		{TypeTool, `"sources":[{"field":"price",` + prices + `,` + date + `},{"field":"price",` + prices + `,"checked_at":"2026-11-03"}]`,
			[]string{"sources[1].url: is given twice for price; keep the entry with the last date"}},
		{TypeTool, `"sources":{}`, []string{"sources: must be an array (got an object)"}},
		{TypeTool, `"sources":["https://a.example"]`, []string{"sources[0]: must be an object (got a string)"}},
		{TypeTool, `"sources":[{"field":"price",` + prices + `}]`, []string{"sources[0].checked_at: is required, but missing"}},
		{TypeTool, `"sources":[{"field":"price","url":"a.example",` + date + `}]`,
			[]string{`sources[0].url: must be an absolute http or https URL (got "a.example")`}},
		{TypeTool, `"sources":[{"field":"price",` + prices + `,"checked_at":"2026-11-31"}]`,
			[]string{`sources[0].checked_at: must be a calendar date as YYYY-MM-DD (got "2026-11-31")`}},
		{TypeTool, `"sources":[{"field":"sections",` + prices + `,` + date + `}]`, []string{"sources[0].field: must be one of slug, name, domain, " +
			"category, icp, pricing, price, score, verifiability, tagline, canonical_url, avis_url, alternatives_url, updated_at, ends_at, tier, " +
			`mainstream, obsolescence (got "sections")`}},
		{TypeTool, `"sources":[{"field":"price",` + prices + `,` + date + `,"checkd_at":""}]`,
			[]string{"sources[0].checkd_at: is not a known field; did you mean checked_at?"}},
	} {
		rec, got := read(c.recordType, c.fields)
		check.Slices(t, got, c.want, "%s %s", c.recordType, c.fields)
		if tool, ok := rec.(*Tool); ok && len(c.want) == 0 && strings.Contains(c.fields, prices) && len(tool.Sources) != 2 {
			t.Errorf("%s: got %v, want two sources", c.fields, tool.Sources)
		}
	}
}

// What a feed contains is what is read.
func TestValues(t *testing.T) {
	rec, dec := New(TypeTool).(*Tool), NewDecoder([]byte(`{"score":8.4,"verifiability":null,"tier":2,"mainstream":true,"obsolescence":3,"avis_url":"https://a.example"}`))
	_, _ = dec.ReadToken()
	if err := Read(dec, rec, func(path, problem string) {
		check.Equal(t, problem, "is required, but missing", path)
	}); err != nil {
		t.Fatal(err)
	}
	got := string(Encode(rec))
	for _, want := range []string{`"score":8.4,`, `"tier":2,`, `"mainstream":true`, `"obsolescence":3`, `"avis_url":"https://a.example"`} {
		check.Contains(t, got, want)
	}
	var number float64
	numberRule(false, 0, 10).read([]byte("-0"), reflect.ValueOf(&number).Elem(), func(_, problem string) { t.Error(problem) })
	check.True(t, !math.Signbit(number), "got %v, want 0, which is written in one way", number)
	for whole, want := range map[bool]string{true: "integer", false: "number"} {
		check.Equal[any](t, numberRule(whole, 0, 10).schema["type"], want, "the type")
	}
	for length, want := range map[int]string{maxSlug: "", maxSlug + 1: "must have at most 80 characters (got 81"} {
		problem := CheckSlug(strings.Repeat("a", length))
		check.True(t, strings.HasPrefix(problem, want) && (want == "") == (problem == ""), "%d characters: got %q, want %q", length, problem, want)
	}
}

// Each code and each field has one word, wherever it is shown.
func TestWords(t *testing.T) {
	for _, column := range []string{"icp", "pricing", "retired_reason"} {
		for _, code := range Codes(column) {
			word, ok := Word(code)
			check.Must(t, ok, true, "%s: no word for %s", column, code)
			check.True(t, word != "", "%s: got no word for %s, want one in codes", column, code)
		}
	}
	word, ok := Word("vibe_coder")
	check.Must(t, ok, true)
	check.Equal(t, word, "vibe coders")
	labels := map[string]string{}
	for _, rec := range []any{Tool{}, Retired{}, Comparison{}, Category{}, PriceChange{}} {
		for f := range reflect.TypeOf(rec).Fields() {
			name, label := strings.Split(f.Tag.Get("json"), ",")[0], f.Tag.Get("label")
			check.True(t, label == "" || labels[name] == "" || labels[name] == label, "%T.%s: got the label %q, want %q as in other records", rec, f.Name, label, labels[name])
			labels[name] = label
		}
	}
}
