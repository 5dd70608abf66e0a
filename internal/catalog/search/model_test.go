package search_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/catalog/search"
	"palmares/internal/core/store"
	"palmares/internal/core/text"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// model is a catalog that changes at random, with a search that uses no index.
type model struct {
	random  *rand.Rand
	labels  map[string]string
	tools   map[string]*record.Tool
	retired map[string]bool
}

var vocabulary = strings.Fields(`agent agence agents code coder décodeur écrire écriture cœur l'outil d’équipe vibe-coder net nette
	notes simple simplement 日本語 日本 ab abc abcd abcde abcdef abcdxe abdce 1000 10001 10012 a1000 o'clock مرحبا`)

func (m *model) text(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = vocabulary[m.random.IntN(len(vocabulary))]
	}
	return strings.Join(words, " ")
}

func (m *model) change() {
	for range 1 + m.random.IntN(12) {
		slug := fmt.Sprintf("t%d", m.random.IntN(40))
		switch m.random.IntN(8) {
		case 0:
			delete(m.tools, slug)
			delete(m.retired, slug)
		case 1:
			if m.tools[slug] != nil {
				delete(m.tools, slug)
				m.retired[slug] = true
			}
		case 2:
			m.labels[[]string{"code", "voix", "code in English"}[m.random.IntN(3)]] = m.text(2)
		case 3:
			if t := m.tools[slug]; t != nil {
				price := *t
				price.Price = fmt.Sprintf("%d €/mois", m.random.IntN(100))
				m.tools[slug] = &price
			}
		default:
			delete(m.retired, slug)
			t := named(slug, m.text(2), m.text(3), m.text(m.random.IntN(6)+1))
			t.Category = []string{"code", "voix"}[m.random.IntN(2)]
			if m.random.IntN(3) == 0 {
				t.Translations.En.Tagline = m.text(2)
			}
			m.tools[slug] = t
		}
	}
}

func (m *model) feed(revision int) []byte {
	translated := &record.Category{Slug: "code", Label: m.labels["code"]}
	translated.Translations.En.Label = m.labels["code in English"]
	records := []any{translated, &record.Category{Slug: "voix", Label: m.labels["voix"]}}
	for _, slug := range slices.Sorted(maps.Keys(m.tools)) {
		records = append(records, m.tools[slug])
	}
	for _, slug := range slices.Sorted(maps.Keys(m.retired)) {
		records = append(records, &record.Retired{Slug: slug, Name: m.text(2), Category: "code", Reason: "mort", RetiredAt: "2025-01-01", Note: m.text(3)})
	}
	return feedtest.Of(fmt.Sprintf("2026-11-%02d", revision), records...)
}

// words returns the words of a tool as they are stored: those in English after a plus.
func (m *model) words(t *record.Tool) []string {
	words := text.Words(strings.Join([]string{t.Name, t.Domain, m.labels[t.Category], t.Tagline}, "\n"))
	for _, section := range t.Sections {
		words = append(words, text.Words(section.Text)...)
	}
	if label := m.labels[t.Category+" in English"]; label != "" || t.Translations.En.Tagline != "" {
		for _, word := range text.Words(strings.Join([]string{t.Name, t.Domain, label, t.Translations.En.Tagline}, "\n")) {
			words = append(words, "+"+word)
		}
	}
	return words
}

func (m *model) find(query string) []string {
	matching := func(matches func(word, indexed string) bool) (found []string) {
		for slug, tool := range m.tools {
			indexed := m.words(tool)
			for i, word := range indexed {
				indexed[i] = strings.TrimPrefix(word, "+")
			}
			all := true
			for _, word := range text.Words(query) {
				all = all && slices.ContainsFunc(indexed, func(other string) bool { return matches(word, other) })
			}
			if all {
				found = append(found, slug)
			}
		}
		slices.Sort(found)
		return found
	}
	if found := matching(func(word, other string) bool { return strings.HasPrefix(other, word) }); len(found) > 0 {
		return found
	}
	return matching(func(word, other string) bool {
		return strings.HasPrefix(other, word) || utf8.RuneCountInString(word) >= 5 && !isNumber(word) && search.IsSimilar(word, other)
	})
}

func isNumber(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return r < '0' || r > '9' })
}

// query returns words of the vocabulary, shortened and misspelled at random.
func (m *model) query() string {
	words := text.Words(m.text(1 + m.random.IntN(3)))
	for i, word := range words {
		runes := []rune(word)
		switch m.random.IntN(4) {
		case 0:
			runes = runes[:1+m.random.IntN(len(runes))]
		case 1:
			runes[m.random.IntN(len(runes))] = []rune("x0")[m.random.IntN(2)]
		}
		words[i] = string(runes)
	}
	return strings.Join(words, " ")
}

func TestIndexFollowsTheCatalog(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		m := &model{rand.New(rand.NewPCG(7, 7)), map[string]string{"code": "Code", "voix": "Voix"}, map[string]*record.Tool{}, map[string]bool{}}
		indexed, vocabulary := map[string]string{}, map[string]int{} // the vocabulary counts every version of a tool
		found := map[int]map[string][]string{}                       // by revision and query
		var updated *search.Index                                    // with each revision
		for revision := 1; revision <= 12; revision++ {
			m.change()
			feedtest.Publish(t, s, m.feed(revision))
			found[revision] = map[string][]string{}
			for range 25 {
				query := m.query()
				found[revision][query] = find(t, s, query)
				want := m.find(query)
				check.MustTrue(t, slices.Equal(found[revision][query], want), "revision %d, %q: got %q, want %q", revision, query, found[revision][query], want)
			}
			before := updated
			updated = check.Try(search.Load(t.Context(), s.Read, s.Dialect(), before, revision-1)).OK(t)
			for _, index := range []*search.Index{updated, before} { // the new one does not change the old one
				for earlier := 1; earlier <= revision && index != nil; earlier++ {
					for query, want := range found[earlier] {
						got := findWith(t, index, earlier, query)
						check.MustTrue(t, index != updated && earlier >= revision || slices.Equal(got, want), "revision %d, as of %d, %q: got %q, want %q", revision, earlier, query, got, want)
					}
				}
			}
			for slug := range indexed {
				if m.tools[slug] == nil {
					delete(indexed, slug)
				}
			}
			for slug, tool := range m.tools {
				words := slices.Compact(slices.Sorted(slices.Values(m.words(tool))))
				if text := strings.Join(words, " "); indexed[slug] != text {
					indexed[slug] = text
					for _, word := range words {
						vocabulary[word]++
					}
				}
			}
			got := storedWords(t, s)
			check.MustTrue(t, maps.Equal(got, vocabulary), "revision %d, vocabulary: got %v, want %v", revision, got, vocabulary)
		}
		checkSince := func(first int) {
			t.Helper()
			for revision, queries := range found {
				for query, want := range queries {
					if revision < first {
						continue
					}
					check.Slices(t, findIn(t, s, revision, query), want, "as of revision %d, from %d on, %q", revision, first, query)
				}
			}
		}
		checkSince(1)
		for _, first := range []int{5, 12} {
			check.Try(publish.Prune(t.Context(), s, first)).OK(t)
			checkSince(first)
		}
		vocabulary = map[string]int{} // of the last revision only
		for _, text := range indexed {
			for word := range strings.FieldsSeq(text) {
				vocabulary[word]++
			}
		}
		got := storedWords(t, s)
		check.True(t, maps.Equal(got, vocabulary), "vocabulary without history: got %v, want %v", got, vocabulary)
	})
}
