package feed_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"palmares/ent"
	"palmares/ent/tool"
	"palmares/internal/catalog/feed"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

func TestDerivedNumbers(t *testing.T) {
	scored := func(score float64) func(*feed.Tool) { return func(t *feed.Tool) { t.Score = &score } }
	unscored := func(t *feed.Tool) { t.Score = nil }
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		hidden := aComparison("hidden", "a", "b")
		hidden.Published = false
		publish(t, s, catalogOf("2026-11-01",
			&feed.Category{Slug: "vide", Label: "Vide"}, &feed.Category{Slug: "voix", Label: "Voix"},
			aTool("a", scored(8.33)), aTool("b", scored(8.34)), aTool("c", unscored),
			aTool("d", unscored, func(t *feed.Tool) { t.Category = "voix" }),
			aRetired("old"), aComparison("a-vs-b", "a", "b"), hidden))

		rel, err := s.CurrentRelease(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "totals", []int{rel.ToolsTotal, rel.ToolsTested, rel.ToolsRetired, rel.ComparisonsTotal}, []int{4, 2, 1, 1})
		expect(t, "average, a tie goes up", *rel.ToolsAvgScore, 8.34)
		for slug, want := range map[string]string{"code": "3 8.34", "voix": "1 none", "vide": "0 none"} {
			expect(t, slug, numbers(s.Read.Category.GetX(t.Context(), slug)), want)
		}
	})
}

func numbers(c *ent.Category) string {
	if c.AvgScore == nil {
		return fmt.Sprintf("%d none", c.ToolCount)
	}
	return fmt.Sprintf("%d %v", c.ToolCount, *c.AvgScore)
}

func TestEmbeddingsSet(t *testing.T) {
	is := func(tier int, mainstream bool, score float64) func(*feed.Tool) {
		return func(t *feed.Tool) {
			t.Tier, t.Mainstream, t.Score = feed.Tier(tier), mainstream, &score
			if score < 0 {
				t.Score = nil
			}
		}
	}
	set := func(t *testing.T, s *store.Store) []string {
		slugs, err := s.Read.Tool.Query().Where(tool.InEmbeddings(true)).Order(tool.ByID()).IDs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slugs
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, catalogOf("2026-11-01",
			aTool("tier-1", is(1, false, 2)), aTool("tier-1-unscored", is(1, false, -1)), aTool("score-8", is(3, false, 8)),
			aTool("score-7-9", is(3, true, 7.9)), aTool("tier-2-mainstream", is(2, true, 3)), aTool("tier-2", is(2, false, 7)),
			aTool("spare", is(3, false, 1)), aRetired("old")))
		expect(t, "the set", set(t, s), []string{"score-8", "tier-1", "tier-1-unscored", "tier-2-mainstream"})

		// One text changes, one tool leaves the set, one joins.
		publish(t, s, catalogOf("2026-11-02",
			aTool("tier-1", is(1, false, 2), func(t *feed.Tool) { t.Sections[0].Text = "Mieux." }), aTool("tier-1-unscored", is(1, false, -1)),
			aTool("score-8", is(3, false, 7)), aTool("score-7-9", is(3, true, 8.1)), aTool("tier-2-mainstream", is(2, true, 3)),
			aTool("tier-2", is(2, false, 7)), aTool("spare", is(3, false, 1)), aRetired("old")))
		expect(t, "the set after", set(t, s), []string{"score-7-9", "tier-1", "tier-1-unscored", "tier-2-mainstream"})
		told := slices.DeleteFunc(journalOf(t, s, 2), func(e string) bool { return !strings.HasPrefix(e, "embeddings.") })
		expect(t, "told", told, []string{"embeddings.changed score-7-9", "embeddings.changed score-8", "embeddings.changed tier-1"})
	})
}

// Where more than 300 qualify, the last of the last group are left out, and
// come in when a better one goes.
func TestEmbeddingsSetIsBounded(t *testing.T) {
	many := func(better int) []any {
		var records []any
		for i := range 310 {
			records = append(records, aTool(fmt.Sprintf("m%03d", i), func(t *feed.Tool) {
				t.Tier, t.Mainstream = 2, true
				if i < better {
					t.Tier = 1
				}
			}))
		}
		return records
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, catalogOf("2026-11-01", many(5)...))
		in := func(slug string) bool { return s.Read.Tool.GetX(t.Context(), slug).InEmbeddings }
		expect(t, "how many", s.Read.Tool.Query().Where(tool.InEmbeddings(true)).CountX(t.Context()), 300)
		expect(t, "the last in, the first out", []bool{in("m299"), in("m300")}, []bool{true, false})

		// A better one pushes the last out, and lets it back in by going.
		better := aTool("zz", func(t *feed.Tool) { t.Tier = 1 })
		publish(t, s, catalogOf("2026-11-01", append(many(5), better)...))
		expect(t, "after one came", []bool{in("zz"), in("m298"), in("m299")}, []bool{true, true, false})
		unscored := aTool("zz", func(t *feed.Tool) { t.Tier, t.Mainstream, t.Score = 2, true, nil })
		publish(t, s, catalogOf("2026-11-01", append(many(5), unscored)...))
		expect(t, "unscored ones are the last", []bool{in("zz"), in("m299"), in("m300")}, []bool{false, true, false})
		publish(t, s, catalogOf("2026-11-01", many(5)...))

		publish(t, s, catalogOf("2026-11-02", many(5)[1:]...))
		expect(t, "after one left", []bool{in("m300"), in("m301")}, []bool{true, false})
		expect(t, "told", journalOf(t, s, 5), []string{"tool.removed m000", "embeddings.changed m000", "embeddings.changed m300"})
	})
}
