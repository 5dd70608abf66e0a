package record

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"palmares/ent"
)

// An invalid declaration panics at startup with a message that names the field.
func TestInvalidDeclarations(t *testing.T) {
	for _, c := range []struct {
		declared any
		want     string
	}{
		{struct {
			Motto string `json:"motto" rule:"text"`
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
			Price int `json:"price" rule:"0..10"`
		}{}, `Price: is a int, but column price of ent.Tool is a string`},
		{struct {
			Domain *string `json:"domain" rule:"text"`
		}{}, `Domain: is a *string, but column domain of ent.Tool is a string`},
		{struct {
			Sections []Section `json:"sections" event:"Its review."`
		}{}, `Sections: events cannot show a list`},
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

// derived lists the columns that an import sets without a field of their own.
var derived = map[reflect.Type][]string{
	reflect.TypeFor[ent.Tool](): {
		"name_key", "untested", "price_amount", "price_period", "sections_hash", "history_hash", "in_embeddings", "fingerprint", "since_release",
	},
	reflect.TypeFor[ent.Category]():   {"tool_count", "avg_score", "fingerprint", "since_release"},
	reflect.TypeFor[ent.Comparison](): {"fingerprint", "since_release"},
}

// A column added to ent/schema needs a field, or it would always be empty.
func TestEveryColumnHasAField(t *testing.T) {
	recordsOf := map[reflect.Type][]reflect.Type{
		reflect.TypeFor[ent.Tool]():       {reflect.TypeFor[Tool](), reflect.TypeFor[Retired]()},
		reflect.TypeFor[ent.Category]():   {reflect.TypeFor[Category]()},
		reflect.TypeFor[ent.Comparison](): {reflect.TypeFor[Comparison]()},
	}
	for row, records := range recordsOf {
		for i := range row.NumField() {
			column, isColumn := strings.CutSuffix(row.Field(i).Tag.Get("json"), ",omitempty")
			if !isColumn || slices.Contains(derived[row], column) {
				continue
			}
			if !slices.ContainsFunc(records, func(rec reflect.Type) bool {
				return slices.ContainsFunc(tables[rec].fields, func(f field) bool { return f.column == column })
			}) {
				t.Errorf("column %s of ent.%s: got no field, want one in %v", column, row.Name(), records)
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
