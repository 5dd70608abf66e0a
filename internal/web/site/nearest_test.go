package site_test

import (
	"fmt"
	"testing"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// Who makes a slip is helped however large the catalog is, and wherever in its
// lists the right name stands.
func TestNearestInALargeCatalog(t *testing.T) {
	const many = 450
	tool := func(i int) string {
		return fmt.Sprintf("%s-%s-%d", []string{"galet", "plume", "voix"}[i%3], []string{"pro", "nova"}[i%2], i)
	}
	var records []any
	for i := range many {
		records = append(records, feedtest.Tool(tool(i)),
			&feed.Retired{Slug: "ancien-" + tool(i), Name: "Ancien", Category: "code", Reason: "mort", RetiredAt: "2026-03-14", Note: "Fini."},
			&feed.Comparison{Slug: fmt.Sprintf("duel-%d", i), Title: "Duel ?", ToolA: tool(i), ToolB: tool((i + 1) % many), Winner: tool(i), WinnerNote: "Bien.",
				Published: true, UpdatedAt: "2026-11-01", CanonicalURL: "https://palmares.example/duel"})
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, feedtest.Catalog("2026-11-01", records...))
		handler := serving(t, s)
		for i := 0; i < many; i += 37 {
			says(t, handler, "/tools/"+tool(i)[:2]+tool(i)[3:], 404, `<a href="/tools/`+tool(i)+`"`)
			says(t, handler, "/cimetiere/ancein-"+tool(i), 404, `<a href="/cimetiere/ancien-`+tool(i)+`"`)
			says(t, handler, fmt.Sprintf("/comparatifs/duel%d", i), 404, fmt.Sprintf(`<a href="/comparatifs/duel-%d"`, i))
		}
		// What a release brings is known after it.
		says(t, handler, "/", 200)
		publish(t, s, feedtest.Catalog("2026-11-02", append(records, feedtest.Tool("nouveau-venu"))...))
		waitFor(t, func() bool {
			visit(handler, "GET", "/tools?q=nouveau") // tells of the release
			return containsLink(handler, "/tools/nouveu-venu", "/tools/nouveau-venu")
		})
	})
}
