package record

import (
	"fmt"
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
			Sections []Section `json:"sections" event:"Its review."`
		}{}, `Sections: events cannot show a list`},
		{struct {
			Name string `json:"name" rule:"text"`
		}{}, `Name: no description: add a help tag`},
	} {
		got := ""
		func() {
			defer func() { got = fmt.Sprint(recover()) }()
			newTable(reflect.TypeOf(c.declared), reflect.TypeFor[ent.Tool]())
		}()
		if !strings.Contains(got, c.want) {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
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
				if stored = append(stored, f.column); !slices.Contains(c.columns, f.column) {
					t.Errorf("%v.%s: got column %s, want one of %v", rec, f.name, f.column, c.columns)
				}
			}
		}
		for _, column := range c.columns[1:] { // after the primary key
			if !slices.Contains(c.derived, column) && !slices.Contains(stored, column) {
				t.Errorf("column %s of %v: got no field, want one in %v", column, row, c.records)
			}
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
	if got, want := Fingerprint(tool), "4fd78a17cf044e6612bc1ec84f4c19cb"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSectionsHash(t *testing.T) {
	got := SectionsHash([]Section{{"verdict", "Bien."}, {"prix", "Juste."}})
	// printf 'verdict\0Bien.\0prix\0Juste.\0' | sha256sum
	if want := "sha256-3167db5b924ab0cb35705ef1a3c9a7883b5d9b5d6403d33423c378780ee17658"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
