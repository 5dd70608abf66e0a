package search

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// isSimilar reports whether a word is at most one edit away from a prefix of
// another, by trying every prefix.
func isSimilar(word, other string) bool {
	a, b := []rune(word), []rune(other)
	for n := range len(b) + 1 {
		if atMostOneEdit(a, b[:n]) {
			return true
		}
	}
	return false
}

func atMostOneEdit(a, b []rune) bool {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	a, b = a[i:], b[i:]
	switch {
	case len(a) == len(b):
		return len(a) == 0 || slices.Equal(a[1:], b[1:]) ||
			len(a) > 1 && a[0] == b[1] && a[1] == b[0] && slices.Equal(a[2:], b[2:])
	case len(a) == len(b)+1:
		return slices.Equal(a[1:], b)
	case len(a)+1 == len(b):
		return slices.Equal(a, b[1:])
	}
	return false
}

func TestSimilarWords(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	letters := []rune("abcé日")
	randomWord := func(length int) string {
		var word strings.Builder
		for range length {
			word.WriteRune(letters[random.IntN(len(letters))])
		}
		return word.String()
	}
	for range 200 {
		x := &Index{}
		for range random.IntN(300) {
			x.words = append(x.words, randomWord(1+random.IntN(8)))
		}
		x.words = distinct(x.words)
		word := randomWord(1 + random.IntN(7))
		var got, want []string
		for _, p := range x.similar(French, word) {
			got = append(got, x.words[p.from:p.to]...)
		}
		for _, other := range x.words {
			if isSimilar(word, other) {
				want = append(want, other)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("similar to %q among %q: got %q, want %q", word, x.words, got, want)
		}
		if !utf8.ValidString(strings.Join(got, "")) {
			t.Errorf("got %q, want valid UTF-8", got)
		}
	}
}

func TestRank(t *testing.T) {
	for _, c := range []struct {
		query, name string
		want        int
	}{
		{"plume", "Plume", RankExact},
		{"Écritoire cie", "écritoire & CIE", RankExact},
		{"plum", "Plume noire", RankPrefix},
		{"plume no", "Plume noire", RankPrefix},
		{"l'atel", "L’Atelier nova", RankPrefix},
		{"noire", "Plume noire", RankName},
		{"noi plu", "Plume noire", RankName},
		{"lume", "Plume noire", RankOther},
		{"plume rouge", "Plume noire", RankOther},
		{"agent", "🦊", RankOther},
	} {
		if got := Rank(Key(c.query), Key(c.name)); got != c.want {
			t.Errorf("Rank(%q, %q) = %d, want %d", c.query, c.name, got, c.want)
		}
	}
}
