package saved

import (
	"strings"
	"testing"

	"palmares/auth"
	"palmares/ent/savedquery"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// The text of a query suggests its title, description and chart.
func TestDraft(t *testing.T) {
	q, _ := newQueries(t, testkit.Open(t, testkit.SQLite(t)))
	for text, want := range map[string]string{
		"query BestFreeTools {tools {items {name score}}}":                                                           "Best free tools||bar name score ",
		"# Growth\n# by month\n{series(metrics: [count], every: month) {metric points {period start value}}}":        "Growth|by month|line period count ",
		"#Growth\nquery APIGrowth {series(metrics: [count, tested]) {metric points {start value}}}":                  "API growth|Growth|   ",
		"query scores_by_key {series(metrics: [mean_score], by: category) {key points {period value}}}":              "Scores by key||line period value key",
		"{stats {toolsTotal toolsTested}}":                                                                           "||tiles   ",
		"{categories {slug label}}":                                                                                  "||table   ",
		"{categories {slug toolCount}}":                                                                              "||   ",
		"{categories {slug} tools {items {name}}}":                                                                   "||   ",
		"#" + strings.Repeat("x", MaxTitle+1) + "\n{stats {toolsTotal}}":                                             "|" + strings.Repeat("x", MaxTitle+1) + "|tiles   ",
		"#" + strings.Repeat("x", MaxDescription+1) + "\nquery " + strings.Repeat("a", 101) + "{stats {toolsTotal}}": "||tiles   ",
	} {
		draft, err := q.Draft(text, nil)
		check.OK(t, err)
		c := draft.Chart
		check.Equal(t, draft.Title+"|"+draft.Description+"|"+strings.Join([]string{c.Kind, c.X, c.Y, c.Series}, " "), want, "%.60s", text)
		check.Equal(t, c.check(draft.Columns), nil, "%.60s", text)
	}
}

func TestChartIsChecked(t *testing.T) {
	q, _ := newQueries(t, testkit.Open(t, testkit.SQLite(t)))
	draft, err := q.Draft("{tools {items {slug name score obsolescence}}}", nil)
	check.OK(t, err)
	for chart, want := range map[Chart]string{
		{}: "", {Kind: Table}: "", {Kind: Tiles}: "", {Kind: Bar, X: "name", Y: "score"}: "", {Kind: Line, X: "obsolescence", Y: "score", Series: "name"}: "",
		{Kind: "pie"}:                                        "must be line, bar, tiles or table",
		{Kind: Bar, X: "name"}:                               "Choose a column for each axis",
		{Kind: Bar, X: "name", Y: "price"}:                   `no column "price" for the chart. It has these: slug, name, score, obsolescence.`,
		{Kind: Line, X: "name", Y: "score", Series: "color"}: `no column "color"`,
		{Kind: Bar, X: "score", Y: "name"}:                   `(got "name"). These have numbers: score, obsolescence.`,
		{Kind: Bar, X: "score", Y: "score"}:                  "must be different columns",
		{Kind: Line, X: "name", Y: "score", Series: "name"}:  "must be different columns",
	} {
		if got := messageOf(chart.check(draft.Columns)); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%v: got %q, want %q", chart, got, want)
		}
	}
	check.Contains(t, messageOf(Chart{Kind: Bar, X: "a", Y: "b"}.check(nil)), "not a table", "without a table: want an error")
}

// A title and a chart belong to the name of a query. Queries that were saved before there
// were titles have one, too.
func TestTitles(t *testing.T) {
	onDemoCatalog(t, func(t *testing.T, s *store.Store, q *Queries) {
		owner := newAccount(t, s, auth.Pro)
		bar := Chart{Kind: Bar, X: "name", Y: "score"}
		const text = "# Above\nquery Best {tools(limit: 2) {items {name score}}}"
		saved, err := q.Save(t.Context(), owner, NewQuery{
			Name: "best", Handle: "titles", Text: text, Title: " Best tools ", Description: "One\r\n\r\ntwo ", Chart: bar, Public: true,
		})
		check.OK(t, err)
		if saved.Title != "Best tools" || saved.Description != "One\n\ntwo" || saved.Chart != bar {
			t.Errorf("got %q, %q and %v, want what was saved", saved.Title, saved.Description, saved.Chart)
		}
		for address, want := range map[string]presentation{
			"/q/titles/best": {"Best tools", "One\n\ntwo", bar}, hashAddress(hashOf(text)): {"Best", "Above", Chart{}},
		} {
			found, err := q.find(t.Context(), address, 0)
			check.OK(t, err)
			check.Equal(t, found.presentation, want, address)
		}
		for search, want := range map[string]int{"best TOOLS": 1, "TWO": 1, "kind": 0, "bar": 0, "score": 0} {
			if list, _, err := q.Public(t.Context(), search, 10, 0); err != nil || len(list) != want {
				t.Errorf("search for %s: got %d queries and %v, want %d", search, len(list), err, want)
			}
		}
		if saved, err = q.Save(t.Context(), owner, NewQuery{Name: "best", Text: text, Chart: Chart{Kind: Table, X: "gone"}}); err != nil || saved.Title != "Best" || saved.Chart != (Chart{Kind: Table}) {
			t.Errorf("without a title: got %+v and %v, want the name of the operation, and a table", saved, err)
		}
		for _, wrong := range []NewQuery{{Title: strings.Repeat("x", MaxTitle+1)}, {Title: "a\nb"}, {Chart: Chart{Kind: Bar, X: "name", Y: "price"}}} {
			wrong.Name, wrong.Text = "wrong", text
			if _, err := q.Save(t.Context(), owner, wrong); err == nil {
				t.Errorf("%+v: got no error, want one", wrong)
			}
		}
		check.OK(t, s.Write.SavedQuery.Update().Where(savedquery.Name("best")).SetTitle("").SetDescription("Only this").SetChart("").Exec(t.Context()))
		if old, err := q.Find(t.Context(), owner, "best"); err != nil || old.Title != "Best" || old.Description != "Only this" || old.Chart != (Chart{}) {
			t.Errorf("saved before: got %+v and %v, want a title from the name", old, err)
		}
	})
}
