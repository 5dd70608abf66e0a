package publish_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent/category"
	"palmares/ent/release"
	"palmares/ent/tool"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
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
	rows, err := s.Read.QueryContext(t.Context(), "SELECT slug, "+words+" FROM tool_search WHERE until_release = 2147483647 ORDER BY slug")
	check.OK(t, err)
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

func synthetic(t *testing.T, opts synth.Options) []byte {
	t.Helper()
	var buf bytes.Buffer
	check.OK(t, synth.Write(t.Context(), &buf, opts))
	return buf.Bytes()
}

// mutate removes, retires and restores tools at random.
func mutate(data []byte, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	var lines []string
	removed := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		slug, _, _ := strings.Cut(strings.TrimPrefix(line, `{"type":"tool","slug":"`), `"`)
		switch {
		case !strings.HasPrefix(line, `{"type":"tool"`) || r.IntN(10) > 0:
			lines = append(lines, line)
		case r.IntN(2) == 0:
			removed[slug] = true
		default:
			retired := &record.Retired{Slug: slug, Name: "Feu " + slug, Category: "code", Reason: "pivot", RetiredAt: "2026-02-02", Note: "Parti."}
			lines = append(lines, string(feed.Line(retired))+"\n")
		}
	}
	var out strings.Builder
	for _, line := range lines {
		if strings.HasPrefix(line, `{"type":"comparatif"`) && refersTo(line, removed) {
			continue
		}
		out.WriteString(line)
	}
	return []byte(out.String())
}

func refersTo(line string, slugs map[string]bool) bool {
	for slug := range slugs {
		if strings.Contains(line, `"`+slug+`"`) {
			return true
		}
	}
	return false
}

// TestRoundTrip exports catalogs after several imports. Importing the export
// again changes nothing, and importing it into an empty database of either kind
// gives the same contents.
func TestRoundTrip(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		for seed := range uint64(6) {
			for revision := range 4 {
				data := mutate(synthetic(t, synth.Options{Tools: 60, Seed: seed, Revision: revision}), seed*10+uint64(revision))
				publishFeed(t, s, data, publish.Options{Force: true})
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
	for revision := range 5 {
		data := mutate(synthetic(t, synth.Options{Tools: 200, Seed: 42, Revision: revision}), uint64(revision))
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
			if row.InEmbeddings && len(row.Edges.Sections) < 4 {
				t.Errorf("sections of %s, in the embeddings set: got %d, want at least 4", row.ID, len(row.Edges.Sections))
			}
			if row.RetiredAt == "" && !strings.HasSuffix(row.Domain, ".example") {
				t.Errorf("domain of %s: got %s, want one in .example", row.ID, row.Domain)
			}
		}
		if len(reasons) != 6 { // five reasons, and none for active tools
			t.Errorf("reasons: got %v, want all five", reasons)
		}
	})
}
