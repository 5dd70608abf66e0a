package search_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"entgo.io/ent/dialect"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/catalog/search"
	"palmares/internal/core/store"
	"palmares/internal/core/text"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// find returns the sorted slugs of the tools that a query matches.
func find(t *testing.T, s *store.Store, query string) []string {
	t.Helper()
	release := check.Try(s.CurrentRelease(t.Context())).OK(t, "%.80q", query)
	return findIn(t, s, release.ID, query)
}

// findIn searches a release like find.
func findIn(t *testing.T, s *store.Store, release int, query string) (found []string) {
	t.Helper()
	index := check.Try(search.Load(t.Context(), s.Read, s.Dialect(), nil, 0)).OK(t, "%.80q", query)
	return findWith(t, index, release, query)
}

func findWith(t *testing.T, index *search.Index, release int, query string) (found []string) {
	t.Helper()
	positions, _, err := index.Find(release, text.Words(query), "")
	check.OK(t, err, "%.80q", query)
	for _, at := range positions {
		found = append(found, index.Texts[at].Slug)
	}
	slices.Sort(found)
	return found
}

// named returns a tool with a name, a tagline and a review.
func named(slug, name, tagline, review string) *record.Tool {
	return feedtest.Tool(slug, func(t *record.Tool) {
		t.Name, t.Tagline = name, tagline
		t.Sections = []record.Section{{Section: "verdict", Text: review}, {Section: "prix", Text: "Tarif honnête."}}
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
		&record.Retired{Slug: "ancien", Name: "Ancien agent", Category: "code", Reason: "mort", RetiredAt: "2025-01-01", Note: "Agent fermé."},
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
		"verdict":            "", // names of sections are not indexed
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
		// Similar words are searched only if there is no exact match.
		"vite":    "plume",
		"verte":   "",
		"rediger": "plume", // a letter too many
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
		feedtest.Publish(t, s, catalog())
		for query, want := range queries {
			check.Slices(t, find(t, s, query), strings.Fields(want), "%.80q", query)
		}
	})
}

func TestTooManyWords(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		index := check.Try(search.Load(t.Context(), s.Read, s.Dialect(), nil, 0)).OK(t)
		var words []string
		for i := range search.MaxWords + 1 {
			words = append(words, string(rune('a'+i)))
		}
		found, _, err := index.Find(1, words, "")
		check.Is(t, err, search.ErrTooManyWords, found)
		found, _, err = index.Find(1, words[1:], "fr")
		check.OK(t, err, "empty catalog")
		check.True(t, found == nil, "empty catalog: got %v, want none", found)
	})
}

// Corrections name the words that a query with typos stands for.
func TestCorrect(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01",
			named("a", "Galet", "Simple.", "Sobre."), named("b", "Gallet", "Simple.", "12345 v12345"), named("c", "Palet", "Rapide.", "Sobre.")))
		index := check.Try(search.Load(t.Context(), s.Read, s.Dialect(), nil, 0)).OK(t)
		for query, want := range map[string]string{
			"galet":         "",
			"gal":           "",
			"galett":        "galet",
			"rapide galet":  "rapide palet",
			"rapyde halet":  "rapide palet",
			"rapi palett":   "rapi palet",
			"rapidde":       "rapide",
			"xxxxx":         "",
			"12346":         "",
			"galett x":      "",
			"palet simplee": "galet simple",
		} {
			check.Equal(t, strings.Join(index.Correct(1, strings.Fields(query)), " "), want, "%q", query)
		}
	})
}

// A prefix of many words is not expanded to them, and in a query with a rare
// word it is not looked up in the index.
func TestPrefixOfManyWords(t *testing.T) {
	var many strings.Builder
	for i := range 200 {
		fmt.Fprintf(&many, "moteur%03d ", i)
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01",
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
			check.Slices(t, find(t, s, query), strings.Fields(want), "%q", query)
		}
	})
}

// inLanguage returns the slugs of all tools that a query matches, those that match in a
// language with a star.
func inLanguage(t *testing.T, s *store.Store, query, language string) string {
	t.Helper()
	index := check.Try(search.Load(t.Context(), s.Read, s.Dialect(), nil, 0)).OK(t)
	release := check.Try(s.CurrentRelease(t.Context())).OK(t)
	positions, in, err := index.Find(release.ID, text.Words(query), language)
	check.OK(t, err)
	var found []string
	for _, at := range positions {
		slug := index.Texts[at].Slug
		if in[at] {
			slug += "*"
		}
		found = append(found, slug)
	}
	slices.Sort(found)
	return strings.Join(found, " ")
}

func translatedCatalog() []byte {
	voice := &record.Category{Slug: "voix", Label: "Voix"}
	voice.Translations.En.Label = "Voice"
	note := named("note", "Note", "Prendre des notes.", "Rédaction.")
	note.Translations.En.Tagline = "Take notes while writing"
	parle := named("parle", "Parle", "Une voix pour vos notes.", "Simple.")
	parle.Category = "voix"
	return feedtest.Of("2026-11-01", &record.Category{Slug: "code", Label: "Code"}, voice, note, parle, named("writing", "Writing Desk", "Écrire.", "Bureau."))
}

func TestTranslationsAreFound(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, translatedCatalog())
		verify := func() {
			t.Helper()
			for _, c := range []struct{ query, language, want string }{
				{"writing", "", "note writing"}, {"writing", "en", "note* writing"}, {"writing", "fr", "note writing*"},
				{"writting", "en", "note* writing"}, {"note prendre", "en", "note"}, {"note prendre", "fr", "note*"},
				{"voice", "fr", "parle"}, {"voice parle", "en", "parle*"}, {"voice notes", "en", "parle"}, {"notes", "en", "note* parle"},
				{"voicee", "fr", "parle"}, {"nothing", "en", ""},
			} {
				check.Equal(t, inLanguage(t, s, c.query, c.language), c.want, "%q in %q", c.query, c.language)
			}
		}
		verify()
		index := check.Try(search.Load(t.Context(), s.Read, s.Dialect(), nil, 0)).OK(t)
		check.Slices(t, index.Correct(1, []string{"writting"}), []string{"writing"}, "want writing")
		// An index without translations is rewritten after a migration, for all releases
		// that have its texts.
		feedtest.Publish(t, s, bytes.Replace(translatedCatalog(), []byte("2026-11-01"), []byte("2026-11-02"), 1))
		exec(t, s, `UPDATE tool_search SET words = 'french'`)
		exec(t, s, `INSERT INTO tool_search (id, slug, words, since_release, until_release) VALUES (-1, '', '', 0, 0)`)
		for range 2 {
			check.OK(t, search.Fill(t.Context(), s))
		}
		verify()
		check.Slices(t, findIn(t, s, 1, "writing"), []string{"note", "writing"}, "as of release 1: want note and writing")
	})
}

// A large catalog whose history was pruned has the same vocabulary as one
// without a history.
func TestPruneInBatches(t *testing.T) {
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		synthetic := func(seed uint64) []byte { return feedtest.Synthetic(t, synth.Options{Tools: 550, Seed: seed}) }
		s := testkit.Open(t, cfg)
		feedtest.Publish(t, s, synthetic(2))
		want := storedWords(t, s)
		feedtest.Publish(t, s, synthetic(3))
		feedtest.Publish(t, s, synthetic(2))
		check.MustTrue(t, !maps.Equal(storedWords(t, s), want), "got the same vocabulary, want the words of three releases")
		check.Try(publish.Prune(t.Context(), s, 3)).OK(t)
		got := storedWords(t, s)
		check.True(t, maps.Equal(got, want), "got a vocabulary of %d words, want %d words with the same counts", len(got), len(want))
	})
}

// storedWords returns how many rows have each word.
func storedWords(t *testing.T, s *store.Store) map[string]int {
	t.Helper()
	column := map[string]string{dialect.SQLite: "words", dialect.Postgres: "array_to_string(tsvector_to_array(words), ' ')"}[s.Dialect()]
	words := map[string]int{}
	err := store.ScanRows(t.Context(), s.Write, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		for word := range strings.FieldsSeq(text) {
			words[word]++
		}
		return err
	}, "SELECT "+column+" FROM tool_search")
	check.OK(t, err)
	return words
}

func exec(t *testing.T, s *store.Store, statement string) {
	t.Helper()
	check.Try(s.Write.ExecContext(t.Context(), statement)).OK(t)
}

func TestImportWritesOnlyChangedTools(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		tools := func(name string) []any {
			return []any{named("a", "Galet", "Un.", "Un."), named("b", name, "Deux.", "Deux.")}
		}
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-01", tools("Orme")...))
		// The entry loses this word only if it is written again.
		exec(t, s, `UPDATE tool_search SET words = 'marque' WHERE slug = 'a'`)
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-02", tools("Orme")...))
		feedtest.Publish(t, s, feedtest.Catalog("2026-11-03", tools("Verger")...))
		check.Slices(t, find(t, s, "marque"), []string{"a"}, "unchanged tool: want a")
		check.Slices(t, find(t, s, "verger"), []string{"b"}, "changed tool: want b")
	})
}

// The index is empty after a migration, and filled at startup or by the next
// import.
func TestFill(t *testing.T) {
	for name, refill := range map[string]func(*testing.T, *store.Store){
		"at startup": func(t *testing.T, s *store.Store) {
			for range 2 {
				check.OK(t, search.Fill(t.Context(), s))
			}
		},
		"by an import": func(t *testing.T, s *store.Store) {
			feedtest.Publish(t, s, bytes.Replace(catalog(), []byte("2026-11-01"), []byte("2026-11-02"), 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.EachStore(t, func(t *testing.T, s *store.Store) {
				feedtest.Publish(t, s, catalog())
				want := storedWords(t, s)
				exec(t, s, `DELETE FROM tool_search`)
				got := find(t, s, "agent")
				check.MustTrue(t, got == nil, "empty index: got %q, want none", got)
				refill(t, s)
				check.Slices(t, find(t, s, "agent"), []string{"ecritoire", "plume"}, "want ecritoire and plume")
				if got := storedWords(t, s); !maps.Equal(got, want) {
					t.Errorf("vocabulary: got %v, want %v", got, want)
				}
			})
		})
	}
}

func TestDryRunIndexesNothing(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		check.Try(publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(catalog())), publish.Options{DryRun: true})).OK(t)
		check.Equal(t, len(storedWords(t, s)), 0, "want no words")
	})
}
