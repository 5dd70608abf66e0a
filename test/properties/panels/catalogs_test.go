// Package panels_test compares the explorer's dashboard panels with statements in SQL
// on the files of the same release: see sql_test.go.
package panels_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// dates are the feed dates. Two are equal, and one is older than the one before it.
var dates = []string{"2026-01-30", "2026-03-02", "2026-03-02", "2026-04-30", "2026-04-11", "2026-07-01", "2026-10-05", "2026-11-14"}

// randomFeeds returns the feeds of eight releases.
func randomFeeds(seed uint64) (feeds [][]byte) {
	catalog := feedtest.NewRandom(seed, 40)
	catalog.Simple = true // the statements order by slug, and compare releases
	for i, date := range dates {
		catalog.Date = date
		if i == 0 {
			catalog.Change(80)
		}
		catalog.Change(40)
		feeds = append(feeds, catalog.Feed())
	}
	return feeds
}

// Programs read the files of a server: hyparquet only the parts that it needs, and pandas
// with the types of the columns.
func TestFileReadersWithNode(t *testing.T) {
	t.Parallel()
	testkit.NPM(t, "testdata")
	cfg := testkit.SQLite(t)
	blackbox.MustRun(t, blackbox.Command(t, cfg, "import", blackbox.SynthFile(t, synth.Options{Tools: 3000, Seed: 1})))
	s := blackbox.Serve(t, cfg)
	key := blackbox.NewKey(t, cfg, "developer")
	wait.Until(t, "the files", func() bool { status, _ := s.Get(t, "/files/index.json"); return status == 200 })

	node := exec.CommandContext(t.Context(), "node", "ranges.mjs", "http://"+s.Address+"/files/latest/tools.parquet", key)
	node.Dir = "testdata"
	var ranges struct {
		Transferred, Size, Rows int
		First                   struct{ Slug string }
	}
	readJSON(t, node, &ranges)
	check.True(t, ranges.Rows == 3000 && ranges.First.Slug != "" && ranges.Transferred != 0 && ranges.Transferred < ranges.Size, "got %+v, want all rows and fewer bytes than the file has", ranges)

	folder := t.TempDir()
	blackbox.MustRun(t, blackbox.Command(t, cfg, "export", "--format", "parquet", folder))
	blackbox.MustRun(t, blackbox.Command(t, cfg, "export", "--format", "sqlite", folder+"/catalog.sqlite"))
	var table struct {
		Rows    int
		Types   map[string]string
		Parquet *int
	}
	readJSON(t, exec.CommandContext(t.Context(), testkit.Pandas.Ensure(t), "testdata/tables.py", folder), &table)
	if table.Rows != 3000 || table.Types["monthly_price"] != "float64" || table.Types["tier"] != "int64" || !strings.HasPrefix(table.Types["updated_at"], "datetime64") ||
		table.Parquet != nil && *table.Parquet != 3000 {
		t.Errorf("got %+v from pandas, want 3000 rows with typed columns", table)
	}
}

func readJSON(t *testing.T, cmd *exec.Cmd, into any) {
	t.Helper()
	out, err := cmd.Output()
	if err != nil {
		var stderr []byte
		if exit, ok := err.(*exec.ExitError); ok {
			stderr = exit.Stderr
		}
		t.Fatalf("%v: %v %s", cmd.Args, err, stderr)
	}
	check.OK(t, json.Unmarshal(out, into))
}

const (
	page     = "../../../docs/design/012-twenty-panels.md"
	earlier  = `coalesce((SELECT max(number) FROM releases WHERE date <= '2026-03-02'), (SELECT min(number) FROM releases))`
	cents    = `CAST(round(monthly_price * 100) AS BIGINT)`
	previous = `(SELECT max(number) - 1 FROM releases)`
	added    = `(SELECT CAST(r.date AS VARCHAR) FROM releases r WHERE r.number = (SELECT min(first_release) FROM history h WHERE h.slug = t.slug))`
)

// inDuckDB are the panels of the page in SQL.
var inDuckDB = map[string]statement{
	"several-tools":     {sql: `SELECT slug, name, score, price FROM tools WHERE slug IN ('t01', 't05', 't09') ORDER BY slug`, list: "tools.items", fields: []string{"slug", "name", "score", "price"}},
	"tools-of-websites": {sql: `SELECT slug, domain FROM tools WHERE slug IN ('t02', 't03') ORDER BY slug`, list: "tools.items", fields: []string{"slug", "domain"}},
	"either-but-not": {sql: `SELECT slug, category_slug, pricing, score FROM tools WHERE (category_slug = 'code' OR score >= 8) AND pricing <> 'payant' ORDER BY score DESC NULLS LAST, slug LIMIT 20`,
		list: "tools.items", fields: []string{"slug", "categorySlug", "pricing", "score"}},
	"dearest-categories": {sql: `SELECT category_slug, count(*), ` + sqlMean("monthly_price") + ` AS price FROM tools GROUP BY 1 HAVING count(*) >= 3 ORDER BY price DESC NULLS LAST, 1 LIMIT 2`,
		list: "toolGroups", fields: []string{"key", "count", "avgMonthlyPrice"}},
	"cheapest-good-tool": {sql: `SELECT c.slug, t.slug, t.monthly_price, t.score FROM categories c LEFT JOIN
(SELECT *, row_number() OVER (PARTITION BY category_slug ORDER BY monthly_price NULLS LAST, slug) AS place FROM tools WHERE score >= 5) t ON t.category_slug = c.slug AND place = 1 ORDER BY 1`,
		list: "categories", fields: []string{"slug", "tools.name", "tools.monthlyPrice", "tools.score"}},
	"best-value": {sql: `SELECT slug, score, monthly_price FROM tools WHERE monthly_price >= 0.01 ORDER BY CASE WHEN pricing <> 'gratuit' THEN score / monthly_price END DESC NULLS LAST, slug LIMIT 10`,
		list: "tools.items", fields: []string{"slug", "score", "monthlyPrice"}},
	"rank-then-and-now": {sql: `WITH before AS (SELECT slug, rank() OVER (PARTITION BY category_slug ORDER BY score DESC) AS place FROM history h WHERE score IS NOT NULL AND ` + fmt.Sprintf(activeIn, "h", previous) + `),
now AS (SELECT slug, rank() OVER (ORDER BY score DESC) AS place, count(*) OVER () AS n FROM tools WHERE category_slug = 'code' AND score IS NOT NULL)
SELECT t.slug, n.place, n.n, CASE WHEN n.place IS NOT NULL THEN b.place END FROM tools t LEFT JOIN now n ON n.slug = t.slug LEFT JOIN before b ON b.slug = t.slug WHERE category_slug = 'code' ORDER BY t.score DESC NULLS LAST, t.slug`,
		list: "tools.items", fields: []string{"slug", "rank.position", "rank.of", "rank.previous"}},
	"price-index": {sql: `WITH prices AS (SELECT r.number, h.slug, h.monthly_price AS price FROM releases r JOIN history h ON monthly_price > 0 AND ` + fmt.Sprintf(activeIn, "h", "r.number") + `),
links AS (SELECT b.number, avg(ln(b.price / a.price)) AS change FROM prices b LEFT JOIN prices a ON a.slug = b.slug AND a.number = b.number - 1 GROUP BY 1)
SELECT CAST(r.number AS VARCHAR), round(100 * exp(sum(coalesce(change, 0)) OVER (ORDER BY r.number)), 2) FROM releases r LEFT JOIN links l ON l.number = r.number ORDER BY r.number`,
		list: "series.points", fields: []string{"period", "value"}},
	"fell-after-rise": {sql: sqlMovers("score", "2026-03-02", "y < x AND m.slug IN (SELECT tool_slug FROM prices WHERE direction = 'up' AND changed_at >= '2026-03-02')", "m.slug, (y - x) * 1.0 / 100"),
		list: "movers", fields: []string{"slug", "change"}},
	"lifetimes": {sql: `WITH every AS (SELECT *, ` + added + ` AS added FROM retired t)
SELECT slug, added, CASE WHEN CAST(added AS DATE) <= retired_at THEN retired_at - CAST(added AS DATE) END FROM every ORDER BY retired_at DESC, slug`,
		list: "retiredTools.items", fields: []string{"slug", "addedAt", "lifetimeDays"}},
	"newcomers": {sql: `SELECT slug, ` + added + ` FROM tools t ORDER BY slug`, list: "tools.items", fields: []string{"slug", "addedAt"}},
	"category-changes": {sql: `WITH now AS (SELECT category_slug AS key, count(*) AS n, ` + sqlMean("score") + ` AS score, ` + sqlMean("monthly_price") + ` AS price FROM tools GROUP BY 1),
old AS (SELECT category_slug AS key, count(*) AS n, ` + sqlMean("score") + ` AS score, ` + sqlMean("monthly_price") + ` AS price FROM history h WHERE ` + fmt.Sprintf(activeIn, "h", earlier) + ` GROUP BY 1),
passed AS (SELECT ` + earlier + ` < ` + latest + ` AS elapsed)
SELECT now.key, now.n, CASE WHEN elapsed THEN now.n - coalesce(old.n, 0) END, CASE WHEN elapsed THEN round(now.score - old.score, 4) END, CASE WHEN elapsed THEN round(now.price - old.price, 4) END
FROM now CROSS JOIN passed LEFT JOIN old ON old.key = now.key ORDER BY 1`,
		list: "toolGroups", fields: []string{"key", "count", "change.count", "change.avgScore", "change.avgMonthlyPrice"}},
	"price-changes": {sql: priceChanges + `SELECT month, category, count(*) FROM changes JOIN last USING (slug) GROUP BY 1, 2 ORDER BY 1, 2`,
		list: "priceChangeCounts", fields: []string{"month", "category", "count"}},
	"announced-ends": {sql: `SELECT slug, CAST(ends_at AS VARCHAR) FROM tools WHERE ends_at < '2027-04-01' ORDER BY slug`, list: "tools.items", fields: []string{"slug", "endsAt"}},
	"price-percentiles": {sql: `SELECT pricing, floor(quantile_cont(` + cents + `, 0.25) + 0.500001) / 100, floor(quantile_cont(` + cents + `, 0.5) + 0.500001) / 100, floor(quantile_cont(` + cents + `, 0.9) + 0.500001) / 100
FROM tools GROUP BY 1 ORDER BY 1`, list: "toolGroups", fields: []string{"key", "p25MonthlyPrice", "medianMonthlyPrice", "p90MonthlyPrice"}},
	"category-win-rates": {sql: `WITH every AS (SELECT slug, category_slug FROM tools UNION ALL SELECT slug, category_slug FROM retired),
sides AS (SELECT DISTINCT c.slug, e.category_slug AS key, w.category_slug = e.category_slug AS won FROM comparisons c JOIN every e ON e.slug IN (c.tool_a_slug, c.tool_b_slug) JOIN every w ON w.slug = c.winner_slug),
rates AS (SELECT key, count(*) AS n, count(*) FILTER (won) AS wins FROM sides GROUP BY 1)
SELECT key, n, wins, floor((20000 * wins + n) * 1.0 / (2 * n)) / 10000 AS rate FROM rates ORDER BY rate DESC, key`,
		list: "comparisonGroups", fields: []string{"key", "count", "wins", "winRate"}},
	"audience-and-billing": {sql: `SELECT icp_code, billing_period, count(*) AS n FROM tools GROUP BY 1, 2 HAVING n >= 2 ORDER BY n DESC, 1, 2`, list: "toolGroups", fields: []string{"key", "thenKey", "count"}},
	"retirements-by-category": {sql: `SELECT category_slug, reason, count(*) AS n FROM retired GROUP BY 1, 2 ORDER BY n DESC, reason, category_slug LIMIT 10`,
		list: "retirementGroups", fields: []string{"category", "reason", "count"}},
	"freshness": {sql: `WITH days AS (SELECT category_slug AS key, (SELECT date FROM releases WHERE number = ` + latest + `) - updated_at AS days FROM tools)
SELECT key, floor(avg(days) * 100 + 0.500001) / 100, median(days) FROM days GROUP BY 1 ORDER BY 1`,
		list: "toolGroups", fields: []string{"key", "avgDaysSinceUpdate", "medianDaysSinceUpdate"}},
	"duels-of-websites": {sql: `WITH every AS (SELECT slug, name FROM tools UNION ALL SELECT slug, name FROM retired), these AS (SELECT slug FROM tools WHERE slug IN ('t03', 't07'))
SELECT c.slug, w.name, CAST(c.updated_at AS VARCHAR) FROM comparisons c JOIN every w ON w.slug = c.winner_slug
WHERE c.tool_a_slug IN (SELECT slug FROM these) OR c.tool_b_slug IN (SELECT slug FROM these) ORDER BY c.updated_at DESC, c.slug LIMIT 50`,
		list: "comparisons.items", fields: []string{"slug", "winnerName", "updatedAt"}},
}

// addTwenty adds the panels of the page to the statements.
func addTwenty(t *testing.T) {
	text := check.Try(os.ReadFile(page)).OK(t)
	rows := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| .* \\| `(\\{.*\\})` \\|$").FindAllStringSubmatch(string(text), -1)
	check.Equal(t, len(rows), 20, "panels")
	for _, row := range rows {
		s, known := inDuckDB[row[1]]
		check.True(t, known, "got no statement for the panel %s, want one", row[1])
		s.query = row[2]
		statements[row[1]] = s
	}
}
