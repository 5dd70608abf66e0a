package text

import (
	"fmt"
	"math"
	"slices"
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
		check.True(t, !utf8.ValidString(s) || utf8.ValidString(once), "Fold(%q): got %q, want valid UTF-8", s, once)
		twice := Fold(once)
		check.True(t, !utf8.ValidString(s) || twice == once, "folding %q twice: got %q, want %q", s, twice, once)
	})
}

// Halves are rounded away from zero, also those that binary fractions cannot represent.
func TestRound(t *testing.T) {
	for number, want := range map[float64]float64{
		-40.625: -40.63, 40.625: 40.63, 1.005: 1.01, -1.005: -1.01, 2.675: 2.68, 8.124: 8.12, -8.124: -8.12, 0: 0, -0.004: 0,
	} {
		got := Round(number)
		check.Equal(t, got, want, number)
		check.Equal(t, math.Signbit(got), want < 0, number)
	}
}

func TestSimilar(t *testing.T) {
	guides := []string{"quick-start", "paging", "caching", "quotas", "embeddings", "webhooks", "dashboards"}
	tools := []string{"plume", "Écritoire & Cie", "enclume-8", "bosco-et-matelots", "atelier-nova", "plume-noire", "voix-ardoise", "a", "cœur-de-lin"}
	for _, c := range []struct {
		wanted string
		among  []string
		want   string
	}{
		{"webhook", guides, "webhooks"},
		{"WebHooks", guides, "webhooks"},
		{"wehbooks", guides, "webhooks"}, // adjacent letters swapped
		{"quickstart", guides, "quick-start"},
		{"quick start", guides, "quick-start"},
		{"Quick_Start!", guides, "quick-start"},
		{"quick-start-guide", guides, "quick-start"},
		{"start", guides, "quick-start"},
		{"cahcing", guides, "caching"},
		{"pageing", guides, "paging"},
		{"quota", guides, "quotas"},
		{"embedings", guides, "embeddings"},
		{"something else", guides, ""},
		{"", guides, ""},
		{"---", guides, ""},
		{"x", guides, ""},
		{"plum", tools, "plume plume-noire"},
		{"plume", tools, "plume plume-noire"},
		{"plmue", tools, "plume"},
		{"ehco", []string{"echo"}, "echo"},
		{"PLÛME", tools, "plume plume-noire"},
		{"ecritoire cie", tools, "Écritoire & Cie"},
		{"coeur de lin", tools, "cœur-de-lin"},
		{"coeur-de-lain", tools, "cœur-de-lin"},
		{"matelots", tools, "bosco-et-matelots"},
		{"enclme8", tools, "enclume-8"},
		{"a", tools, "a"},
		{strings.Repeat("plume", 1000), tools, "plume"},
	} {
		want := strings.Fields(c.want)
		if c.want == "Écritoire & Cie" {
			want = []string{c.want}
		}
		check.Slices(t, Similar(c.wanted, c.among, 5), want, "%.40q", c.wanted)
	}
}

func TestSimilarLimit(t *testing.T) {
	among := []string{"tool-3", "tool-1", "tool-2"}
	check.Slices(t, Similar("tool", among, 2), []string{"tool-1", "tool-2"}, "limit 2")
	got := Similar("tool", among, 0)
	check.True(t, got == nil, "limit 0: got %q, want none", got)
}

func TestNearest(t *testing.T) {
	parameters := []string{"page", "limit", "category", "score_min", "obsolescence_max", "search", "sort", "as_of"}
	categories := []string{"agents", "chat", "code", "image", "recherche", "redaction", "video", "voix"}
	for _, c := range []struct {
		wanted string
		among  []string
		want   string
	}{
		{"categorie", parameters, "category"},
		{"Catégorie", parameters, "category"},
		{"min_score", parameters, "score_min"},
		{"max-obsolescence", parameters, "obsolescence_max"},
		{"scoreMin", parameters, "score_min"},
		{"offset", parameters, ""},
		{"utm_source", parameters, ""},
		{"", parameters, ""},
		{"--", append(parameters, ""), ""},
		{"coding", categories, "code"},
		{"voice", categories, "voix"},
		{"chatbots", categories, "chat"},
		{"cook", categories, ""},
		{"vos", []string{"vox-lumiere"}, ""}, // two letters are not enough
		{"musique", categories, ""},
		{"code", nil, ""},
		{strings.Repeat("code", 10_000), categories, "code"},
	} {
		check.Equal(t, Nearest(c.wanted, c.among), c.want, "%.40q", c.wanted)
	}
}

// FuzzSimilar checks that only known names are suggested, and that a name is similar to
// itself.
func FuzzSimilar(f *testing.F) {
	f.Add("plume", "plüme")
	f.Add("\xff", "\x00")
	f.Fuzz(func(t *testing.T, wanted, name string) {
		for _, got := range Similar(wanted, []string{name, "plume", ""}, 3) {
			check.True(t, slices.Contains([]string{name, "plume"}, got), "got %q, want one of the names", got)
		}
		if normalize(Truncate(name, maxCompared)) != "" && normalize(Truncate(name, maxCompared)) == normalize(name) && len(Similar(name, []string{name}, 1)) != 1 {
			t.Errorf("got no similar names for %q, want itself", name)
		}
	})
}

// A catalog whose names all resemble each other is the worst case.
func BenchmarkSimilar(b *testing.B) {
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%s-%d", []string{"atelier", "plume", "voix", "enclume"}[i%4], []string{"nova", "noire", "libre"}[i%3], i)
	}
	index := NewIndex(names)
	for _, wanted := range []string{"atelier-nvoa-12001", "nothing-like-it", "at", strings.Repeat("abcdefghijklmnopqrstuvwxyz-0123456789-", 3)} {
		b.Run(wanted, func(b *testing.B) {
			for b.Loop() {
				index.Similar(wanted, 5)
			}
		})
	}
}

func TestWords(t *testing.T) {
	for given, want := range map[string]string{
		"Agent de code":              "agent de code",
		"Écritoire & Cie":            "ecritoire cie",
		"l'agent d’équipe":           "agent equipe",
		"L’AGENT, qu'il dit":         "agent il dit",
		"aujourd'hui":                "aujourd hui",
		"d":                          "d", // no apostrophe follows
		"l'":                         "",
		"c ' est":                    "c est",
		"vibe-coder":                 "vibe coder",
		"plume.example":              "plume example",
		"Cœur d'Æther":               "coeur aether",
		"GPT-4o, 100 %":              "gpt 4o 100",
		"snake_case":                 "snake case",
		"日本語ツール":                     "日本語ツール",
		"مرحبا بالعالم":              "مرحبا بالعالم",
		"שלום, עולם":                 "שלום עולם",
		"हिन्दी":                     "हिनदी", // vowel signs stay, the virama is removed
		"🦊 Renard":                   "renard",
		"🦊":                          "",
		"!?… «»":                     "",
		"a\x00b":                     "a b",
		"a\xffb":                     "a b",
		"a a":                        "a a",
		"":                           "",
		strings.Repeat("é", 50):      strings.Repeat("e", 40),
		strings.Repeat("日", 41):      strings.Repeat("日", 40),
		"x" + strings.Repeat("é", 9): "xeeeeeeeee",
	} {
		got := Words(given)
		check.True(t, slices.Equal(got, strings.Fields(want)), "Words(%q) = %q, want %q", given, got, want)
	}
}

// FuzzWords checks that words have only letters and digits, and that words of words are the
// same.
func FuzzWords(f *testing.F) {
	f.Add("l'agent d’équipe, GPT-4o")
	f.Add("a\xff\x00日本")
	f.Fuzz(func(t *testing.T, s string) {
		words := Words(s)
		for _, word := range words {
			if word == "" || !utf8.ValidString(word) || utf8.RuneCountInString(word) > maxWord || strings.ContainsAny(word, "'\"\\ \x00*:&|()") {
				t.Errorf("Words(%q): got %q, want words of letters and digits", s, word)
			}
		}
		check.Slices(t, Words(strings.Join(words, " ")), words, "words of the words of %q", s)
	})
}
