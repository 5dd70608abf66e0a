package publish_test

import (
	"fmt"
	"strings"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent/category"
	"palmares/ent/release"
	"palmares/ent/tool"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// contents returns everything that readers can see of a catalog: the records
// and the values derived from them.
func contents(t *testing.T, s *store.Store) string {
	t.Helper()
	var all strings.Builder
	all.WriteString(export(t, s))
	rel := s.Read.Release.Query().Order(release.ByID(entsql.OrderDesc())).FirstX(t.Context())
	fmt.Fprintln(&all, rel.FeedDate, rel.ToolsTotal, rel.ToolsTested, show(rel.ToolsAvgScore), rel.ToolsRetired, rel.ComparisonsTotal)
	for _, c := range s.Read.Category.Query().Order(category.ByID()).AllX(t.Context()) {
		fmt.Fprintln(&all, c.ID, c.ToolCount, show(c.AvgScore))
	}
	for _, row := range s.Read.Tool.Query().Order(tool.ByNameKey(), tool.ByID()).AllX(t.Context()) {
		fmt.Fprintln(&all, row.ID, row.NameKey, row.PriceAmount, row.PricePeriod, row.SectionsHash, row.InEmbeddings)
	}
	words := map[string]string{dialect.SQLite: "words", dialect.Postgres: "array_to_string(tsvector_to_array(words), ' ')"}[s.Dialect()]
	rows := check.Try(s.Read.QueryContext(t.Context(), "SELECT slug, "+words+" FROM tool_search WHERE until_release = 2147483647 ORDER BY slug")).OK(t)
	defer rows.Close()
	for rows.Next() {
		var slug, words string
		check.OK(t, rows.Scan(&slug, &words))
		fmt.Fprintln(&all, slug, words)
	}
	return all.String()
}

func show(score *float64) string {
	if score == nil {
		return "none"
	}
	return fmt.Sprint(*score)
}

// TestRoundTrip exports catalogs after several imports. Importing the export
// again changes nothing, and importing it into an empty database of either kind
// gives the same contents.
func TestRoundTrip(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		for seed := range uint64(6) {
			random := feedtest.NewTangled(testkit.SeedOr(t, seed))
			for range 4 {
				feedtest.Publish(t, s, random.Next())
			}
			exported := export(t, s)
			check.Must(t, publishFeed(t, s, []byte(exported)).Release, 0, "seed %d: import of the export: release", seed)
			want := contents(t, s)
			testkit.EachStore(t, func(t *testing.T, empty *store.Store) {
				publishFeed(t, empty, []byte(exported))
				check.Equal(t, contents(t, empty), want, "seed %d: other contents", seed)
			})
		}
	})
}

// TestBothDatabasesAgree imports the same feeds into both databases.
func TestBothDatabasesAgree(t *testing.T) {
	stores := []*store.Store{testkit.Open(t, testkit.SQLite(t)), testkit.Open(t, testkit.Postgres(t))}
	random := feedtest.NewTangled(testkit.SeedOr(t, 42))
	feeds := [][]byte{feedtest.Synthetic(t, synth.Options{Tools: 200, Seed: 42}), feedtest.Synthetic(t, synth.Options{Tools: 200, Seed: 42, Revision: 1})}
	for range 10 {
		feeds = append(feeds, random.Next())
	}
	for revision, data := range feeds {
		var got []string
		for _, s := range stores {
			report := publishFeed(t, s, data, publish.Options{Force: true})
			got = append(got, fmt.Sprintf("%+v\n%v\n%s", *report, journalOf(t, s, report.Release), contents(t, s)))
		}
		check.Must(t, got[0], got[1], "revision %d: different results on SQLite and PostgreSQL", revision)
	}
}

// TestDemoCatalog checks that the demo catalog covers every case, and has the
// format of an export.
func TestDemoCatalog(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		report := publishFeed(t, s, demo.Catalog())
		check.Equal(t, export(t, s), string(demo.Catalog()), "another export")
		check.True(t, report.Tools.Created >= 40 && report.Categories.Created >= 6 && report.Comparisons.Created >= 12, "got %+v, want a larger catalog", report)
		check.True(t, report.Tools.Retired >= 8 && report.PriceChanges >= 10, "got %+v, want a larger catalog", report)
		reasons := map[string]bool{}
		for _, row := range s.Read.Tool.Query().WithSections().AllX(t.Context()) {
			reasons[string(row.RetiredReason)] = true
			check.True(t, !row.InEmbeddings || len(row.Edges.Sections) >= 4, "sections of %s, in the embeddings set: got %d, want at least 4", row.ID, len(row.Edges.Sections))
			check.True(t, row.RetiredAt != "" || strings.HasSuffix(row.Domain, ".example"), "domain of %s: got %s, want one in .example", row.ID, row.Domain)
		}
		check.True(t, len(reasons) == 6, "reasons: got %v, want all five", reasons) // five reasons, and none for active tools
	})
}
