package search_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"palmares/ent"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/search"
	"palmares/internal/core/store"
	"palmares/internal/core/text"
	"palmares/internal/dev/testkit"
)

func publish(t *testing.T, s *store.Store, data []byte) {
	t.Helper()
	if _, err := feed.Import(t.Context(), s, bytes.NewReader(data), feed.Options{Force: true}); err != nil {
		t.Fatal(err)
	}
}

// find returns the sorted slugs of the tools that a text finds.
func find(t *testing.T, s *store.Store, query string) []string {
	t.Helper()
	var found []string
	err := s.WithRelease(t.Context(), func(ctx context.Context, release *ent.Release) error {
		found = findIn(ctx, t, s, release.ID, query)
		return nil
	})
	if err != nil {
		t.Fatalf("%.80q: %v", query, err)
	}
	return found
}

// findIn is find in a release.
func findIn(ctx context.Context, t *testing.T, s *store.Store, release int, query string) (found []string) {
	t.Helper()
	var slugs []string
	index, err := search.Load(ctx, s, s.Dialect(), release, func(slug string) (int, bool) {
		slugs = append(slugs, slug)
		return len(slugs) - 1, true
	})
	if err != nil {
		t.Fatalf("%.80q: %v", query, err)
	}
	positions, err := index.Find(ctx, s, text.Words(query))
	if err != nil {
		t.Fatalf("%.80q: %v", query, err)
	}
	for _, at := range positions {
		found = append(found, slugs[at])
	}
	slices.Sort(found)
	return found
}

// named returns a tool with a name, a tagline and a review.
func named(slug, name, tagline, review string) *feed.Tool {
	return feedtest.Tool(slug, func(t *feed.Tool) {
		t.Name, t.Tagline = name, tagline
		t.Sections = []feed.Section{{Section: "verdict", Text: review}, {Section: "prix", Text: "Tarif honnête."}}
	})
}

func catalog() []byte {
	voice := named("voix-claire", "🦊 Renard", "Transcription de l’arabe : مرحبا بالعالم", "Le goût du « jargon » : NEAR, AND, OR et NOT.")
	voice.Category = "voix"
	long := named("long", strings.Repeat("x", 60), "100 % net, c_est 50\\50", strings.Repeat("é", 45)+" fin")
	return feedtest.Catalog("2026-11-01",
		named("plume", "Plume", "Un agent de code pour l'équipe", "Rédige vite."),
		named("ecritoire", "Écritoire & Cie", "L'atelier d’écriture", "Un assistant, pas un agent-conseil."),
		named("nihon", "日本語ツール", "Cœur d'or", "Aujourd'hui, rien à signaler."),
		voice, long,
		&feed.Retired{Slug: "ancien", Name: "Ancien agent", Category: "code", Reason: "mort", RetiredAt: "2025-01-01", Note: "Agent fermé."},
	)
}

func TestFind(t *testing.T) {
	queries := map[string]string{
		"plume":              "plume",
		"PLU":                "plume",
		"agent code":         "ecritoire plume", // one in the category label
		"code de agent":      "plume",
		"equipe":             "plume",
		"l'equipe":           "plume",
		"d’agent":            "ecritoire plume",
		"agent conseil":      "ecritoire",
		"conseil-agent":      "ecritoire",
		"écriture":           "ecritoire",
		"E\u0301CRITOIRE":    "ecritoire",
		"coeur":              "nihon",
		"cœur":               "nihon",
		"hui":                "nihon",
		"日本":                 "nihon",
		"語":                  "", // not the beginning of a word
		"voix":               "voix-claire",
		"voix-claire.exampl": "voix-claire",
		"exa":                "ecritoire long nihon plume voix-claire",
		"tarif honnete":      "ecritoire long nihon plume voix-claire",
		"verdict":            "", // sections are found by their text
		"مرحبا":              "voix-claire",
		"بالعالم مرحبا":      "voix-claire",
		"🦊":                  "",
		"🦊 renard":           "voix-claire",
		"ancien":             "",
		"...":                "",
		"":                   "",
		"a":                  "ecritoire nihon plume voix-claire",
		"a ag agent":         "ecritoire plume",

		"agnet code":      "ecritoire plume",
		"agnet":           "ecritoire plume",
		"agen":            "ecritoire plume",
		"aent":            "", // too short for a typo
		"plumme":          "plume",
		"plxme":           "plume",
		"lume":            "",
		"eritoire":        "ecritoire",
		"criytoire":       "",
		"ecritiore agemt": "ecritoire",
		"plumxx":          "",
		"plume agemt":     "plume",
		"xgent xquipe":    "plume",
		// A match without a typo is enough.
		"vite":    "plume",
		"verte":   "",
		"rediger": "plume", // none, so "redige" may have a letter too many
		"redige":  "plume",

		`"agent"`:                              "ecritoire plume",
		`agent*`:                               "ecritoire plume",
		`agent OR plume`:                       "",
		`near and or not`:                      "voix-claire",
		`NEAR(agent code)`:                     "",
		`agent AND code`:                       "",
		`-agent`:                               "ecritoire plume",
		`^plume`:                               "plume",
		`words:plume`:                          "",
		`(plume`:                               "plume",
		`plume' | 'agent`:                      "plume",
		`plume':* & !agent`:                    "plume",
		`'; DROP TABLE tool_search; --`:        "",
		`\`:                                    "",
		`\'`:                                   "",
		`50\50`:                                "long",
		`100%`:                                 "long",
		`%`:                                    "",
		`_`:                                    "",
		`c_est`:                                "long",
		"plume\x00agent":                       "plume",
		"\xff\xfe":                             "",
		strings.Repeat("x", 60):                "long",
		strings.Repeat("x", 1000):              "long", // only the first 40 characters count
		strings.Repeat("x", 39) + "y":          "long",
		strings.Repeat("é", 45):                "long",
		strings.Repeat("plume ", 1000):         "plume",
		strings.Repeat("a ag age ", 300):       "ecritoire plume",
		strings.Repeat("\"*^:()'\\&|!<->", 90): "",
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, catalog())
		for query, want := range queries {
			if got := find(t, s, query); !slices.Equal(got, strings.Fields(want)) {
				t.Errorf("%.80q: got %q, want %q", query, got, want)
			}
		}
	})
}

func TestTooManyWords(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		index, err := search.Load(t.Context(), s, s.Dialect(), 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for i := range search.MaxWords + 1 {
			words = append(words, string(rune('a'+i)))
		}
		if found, err := index.Find(t.Context(), s, words); !errors.Is(err, search.ErrTooManyWords) {
			t.Errorf("got %v and %v, want ErrTooManyWords", found, err)
		}
		if found, err := index.Find(t.Context(), s, words[1:]); err != nil || found != nil {
			t.Errorf("an empty catalog: got %v and %v, want none", found, err)
		}
	})
}

// The words of one tool are the others' typos, and only a query that finds
// nothing else finds them.
func TestTypoOnlyIfNothingIsFound(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, feedtest.Catalog("2026-11-01",
			named("a", "Galet", "Simple.", "Sobre."), named("b", "Gallet", "Simple.", "12345 v12345"), named("c", "Palet", "Rapide.", "Sobre.")))
		for query, want := range map[string]string{
			"galet":        "a",
			"gallet":       "b",
			"galett":       "a",
			"galet rapide": "c",
			"halet":        "a c",
			"galletx":      "b",
			"12346":        "", // a number has no typos
			"v12346":       "b",
		} {
			if got := find(t, s, query); !slices.Equal(got, strings.Fields(want)) {
				t.Errorf("%q: got %q, want %q", query, got, want)
			}
		}
	})
}

// A prefix of many words is not replaced by them, and beside a rare word it is
// not looked up in the index.
func TestPrefixOfManyWords(t *testing.T) {
	var many strings.Builder
	for i := range 200 {
		fmt.Fprintf(&many, "moteur%03d ", i)
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, feedtest.Catalog("2026-11-01",
			named("a", "Galet", "Net.", many.String()), named("b", "Orme", "Net.", many.String()), named("c", "Verger", "Net.", "Sobre.")))
		for query, want := range map[string]string{
			"m":                 "a b",
			"moteur":            "a b",
			"moteur1":           "a b",
			"moteur199":         "a b",
			"galet m":           "a",
			"moteur galet":      "a",
			"moteur mo1 galet":  "",
			"orme moteur net":   "b",
			"verger moteur":     "",
			"verger net":        "c",
			"mteur orme":        "b",
			"motuer galett":     "a",
			"motuer net sobrex": "",
		} {
			if got := find(t, s, query); !slices.Equal(got, strings.Fields(want)) {
				t.Errorf("%q: got %q, want %q", query, got, want)
			}
		}
	})
}

// model is a catalog that changes at random, and a search of it without an index.
type model struct {
	random *rand.Rand
	labels map[string]string
	tools  map[string]*feed.Tool
	gone   map[string]bool // retired
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
			delete(m.gone, slug)
		case 1:
			if m.tools[slug] != nil {
				delete(m.tools, slug)
				m.gone[slug] = true
			}
		case 2:
			m.labels[[]string{"code", "voix"}[m.random.IntN(2)]] = m.text(2)
		case 3:
			if t := m.tools[slug]; t != nil {
				price := *t
				price.Price = fmt.Sprintf("%d €/mois", m.random.IntN(100))
				m.tools[slug] = &price
			}
		default:
			delete(m.gone, slug)
			t := named(slug, m.text(2), m.text(3), m.text(m.random.IntN(6)+1))
			t.Category = []string{"code", "voix"}[m.random.IntN(2)]
			m.tools[slug] = t
		}
	}
}

func (m *model) feed(revision int) []byte {
	records := []any{&feed.Category{Slug: "code", Label: m.labels["code"]}, &feed.Category{Slug: "voix", Label: m.labels["voix"]}}
	for _, slug := range slices.Sorted(maps.Keys(m.tools)) {
		records = append(records, m.tools[slug])
	}
	for _, slug := range slices.Sorted(maps.Keys(m.gone)) {
		records = append(records, &feed.Retired{Slug: slug, Name: m.text(2), Category: "code", Reason: "mort", RetiredAt: "2025-01-01", Note: m.text(3)})
	}
	return feedtest.Of(fmt.Sprintf("2026-11-%02d", revision), records...)
}

func (m *model) words(t *feed.Tool) []string {
	words := text.Words(strings.Join([]string{t.Name, t.Domain, m.labels[t.Category], t.Tagline}, "\n"))
	for _, section := range t.Sections {
		words = append(words, text.Words(section.Text)...)
	}
	return words
}

func (m *model) find(query string) []string {
	matching := func(matches func(word, indexed string) bool) (found []string) {
		for slug, tool := range m.tools {
			indexed := m.words(tool)
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
		m := &model{rand.New(rand.NewPCG(7, 7)), map[string]string{"code": "Code", "voix": "Voix"}, map[string]*feed.Tool{}, map[string]bool{}}
		indexed, vocabulary := map[string]string{}, map[string]int{} // every version of a tool counts
		found := map[int]map[string][]string{}                       // by revision and query
		for revision := 1; revision <= 12; revision++ {
			m.change()
			publish(t, s, m.feed(revision))
			found[revision] = map[string][]string{}
			for range 25 {
				query := m.query()
				found[revision][query] = find(t, s, query)
				if want := m.find(query); !slices.Equal(found[revision][query], want) {
					t.Fatalf("revision %d, %q: got %q, want %q", revision, query, found[revision][query], want)
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
			if got := storedWords(t, s); !maps.Equal(got, vocabulary) {
				t.Fatalf("revision %d, vocabulary: got %v, want %v", revision, got, vocabulary)
			}
		}
		checkSince := func(first int) {
			t.Helper()
			for revision, queries := range found {
				for query, want := range queries {
					if revision < first {
						continue
					}
					if got := findIn(t.Context(), t, s, revision, query); !slices.Equal(got, want) {
						t.Errorf("as of revision %d, from %d on, %q: got %q, want %q", revision, first, query, got, want)
					}
				}
			}
		}
		checkSince(1)
		for _, first := range []int{5, 12} {
			if _, err := feed.Prune(t.Context(), s, first); err != nil {
				t.Fatal(err)
			}
			checkSince(first)
		}
		vocabulary = map[string]int{} // only of the last revision
		for _, text := range indexed {
			for word := range strings.FieldsSeq(text) {
				vocabulary[word]++
			}
		}
		if got := storedWords(t, s); !maps.Equal(got, vocabulary) {
			t.Errorf("vocabulary without history: got %v, want %v", got, vocabulary)
		}
	})
}

// Without its history, a large catalog has the vocabulary of a new one.
func TestPruneInBatches(t *testing.T) {
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		synthetic := func(seed uint64) []byte {
			var data bytes.Buffer
			testkit.Check(t, synth.Write(t.Context(), &data, synth.Options{Tools: 550, Seed: seed}))
			return data.Bytes()
		}
		s := testkit.Open(t, cfg)
		publish(t, s, synthetic(2))
		want := storedWords(t, s)
		publish(t, s, synthetic(3))
		publish(t, s, synthetic(2))
		if maps.Equal(storedWords(t, s), want) {
			t.Fatal("got the same vocabulary, want the words of three releases")
		}
		if _, err := feed.Prune(t.Context(), s, 3); err != nil {
			t.Fatal(err)
		}
		if got := storedWords(t, s); !maps.Equal(got, want) {
			t.Errorf("got %d words, want %d, or other counts", len(got), len(want))
		}
	})
}

func storedWords(t *testing.T, s *store.Store) map[string]int {
	t.Helper()
	rows, err := s.Write.QueryContext(t.Context(), "SELECT word, tools FROM search_words")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	words := map[string]int{}
	for rows.Next() {
		var word string
		var tools int
		if err := rows.Scan(&word, &tools); err != nil {
			t.Fatal(err)
		}
		words[word] = tools
	}
	return words
}

func exec(t *testing.T, s *store.Store, statement string) {
	t.Helper()
	if _, err := s.Write.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func TestImportWritesOnlyChangedTools(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		tools := func(name string) []any {
			return []any{named("a", "Galet", "Un.", "Un."), named("b", name, "Deux.", "Deux.")}
		}
		publish(t, s, feedtest.Catalog("2026-11-01", tools("Orme")...))
		// Only an index that is written again loses this word.
		exec(t, s, `UPDATE tool_search SET words = 'marque' WHERE slug = 'a'`)
		exec(t, s, `INSERT INTO search_words (word, tools) VALUES ('marque', 1)`)
		publish(t, s, feedtest.Catalog("2026-11-02", tools("Orme")...))
		publish(t, s, feedtest.Catalog("2026-11-03", tools("Verger")...))
		if got := find(t, s, "marque"); !slices.Equal(got, []string{"a"}) {
			t.Errorf("the unchanged tool: got %q, want its entry as it was", got)
		}
		if got := find(t, s, "verger"); !slices.Equal(got, []string{"b"}) {
			t.Errorf("the changed tool: got %q, want b", got)
		}
	})
}

// A migration leaves the index of a catalog empty.
func TestFill(t *testing.T) {
	for name, refill := range map[string]func(*testing.T, *store.Store){
		"at the start": func(t *testing.T, s *store.Store) {
			for range 2 {
				if err := search.Fill(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
		},
		"by an import": func(t *testing.T, s *store.Store) {
			publish(t, s, bytes.Replace(catalog(), []byte("2026-11-01"), []byte("2026-11-02"), 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.EachStore(t, func(t *testing.T, s *store.Store) {
				publish(t, s, catalog())
				want := storedWords(t, s)
				exec(t, s, `DELETE FROM tool_search`)
				exec(t, s, `DELETE FROM search_words`)
				if got := find(t, s, "agent"); got != nil {
					t.Fatalf("got %q before, want none", got)
				}
				refill(t, s)
				if got := find(t, s, "agent"); !slices.Equal(got, []string{"ecritoire", "plume"}) {
					t.Errorf("got %q, want ecritoire and plume", got)
				}
				if got := storedWords(t, s); !maps.Equal(got, want) {
					t.Errorf("vocabulary: got %v, want %v", got, want)
				}
			})
		})
	}
}

func TestDryRunIndexesNothing(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		if _, err := feed.Import(t.Context(), s, bytes.NewReader(catalog()), feed.Options{DryRun: true}); err != nil {
			t.Fatal(err)
		}
		if words := storedWords(t, s); len(words) != 0 {
			t.Errorf("got %v, want no words", words)
		}
	})
}
