package text

import (
	"strings"
	"testing"
	"unicode/utf8"

	"palmares/internal/dev/check"
)

func TestFold(t *testing.T) {
	for given, want := range map[string]string{
		"Plume":                  "plume",
		"Écritoire & Cie":        "ecritoire & cie",
		"E\u0301critoire":        "ecritoire", // the same letter, decomposed
		"Cœur d’Æther":           "coeur d’aether",
		"ŁÓDŹ":                   "lodz",
		"Straße":                 "strasse",
		"ﬁn":                     "fin",
		"Ångström №5":            "angstrom no5",
		"日本語":                    "日本語",
		"":                       "",
		"ÇÀ ET LÀ, Noël à Büsum": "ca et la, noel a busum",
	} {
		check.Equal(t, Fold(given), want, "Fold(%q", given)
	}
}

func TestSortKeyCutsBetweenCharacters(t *testing.T) {
	key := SortKey(strings.Repeat("日", 100), 100)
	if len(key) != 99 || !utf8.ValidString(key) {
		t.Errorf("got %d bytes, valid UTF-8: %t, want 99 valid bytes", len(key), utf8.ValidString(key))
	}
	check.Equal(t, SortKey("Zoé", 100), "zoe", "short name")
}

// FuzzFold checks that folding keeps UTF-8 valid, and that folding twice changes nothing.
func FuzzFold(f *testing.F) {
	f.Add("Écritoire & Cie")
	f.Fuzz(func(t *testing.T, s string) {
		once := Fold(s)
		if utf8.ValidString(s) && !utf8.ValidString(once) {
			t.Errorf("Fold(%q): got %q, want valid UTF-8", s, once)
		}
		if twice := Fold(once); utf8.ValidString(s) && twice != once {
			t.Errorf("folding %q twice: got %q, want %q", s, twice, once)
		}
	})
}
