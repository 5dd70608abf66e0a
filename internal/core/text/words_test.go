package text

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"palmares/internal/dev/check"
)

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
		if got := Words(given); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("Words(%q) = %q, want %q", given, got, want)
		}
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
