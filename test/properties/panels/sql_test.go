package panels_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"palmares/auth"
	"palmares/graph"
	"palmares/graph/graphtest"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/files"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/web/apidocs"
)

// Parts of the statements, which are the same for DuckDB and SQLite. Averages and
// percentages are computed in whole hundredths, so that halves round as in GraphQL.
const (
	hundredthsOf = `CAST(round(%[1]s * 100) AS BIGINT)`
	meanOf       = `floor((2 * sum(` + hundredthsOf + `) + count(%[1]s)) * 1.0 / (2 * count(%[1]s))) / 100`
	activeIn     = `%[1]s.active AND %[1]s.first_release <= %[2]s AND (%[1]s.last_release IS NULL OR %[1]s.last_release >= %[2]s)`
	latest       = `(SELECT max(number) FROM releases)`

	// months has the points of monthly series, from a month on.
	months = `WITH RECURSIVE months(month) AS (
	SELECT max(month) FROM (SELECT min(substr(CAST(date AS VARCHAR), 1, 7)) AS month FROM releases UNION ALL SELECT '%s') AS first
	UNION ALL SELECT CASE WHEN substr(month, 6, 2) = '12' THEN CAST(CAST(substr(month, 1, 4) AS INTEGER) + 1 AS VARCHAR) || '-01'
		ELSE substr(month, 1, 5) || substr('0' || CAST(CAST(substr(month, 6, 2) AS INTEGER) + 1 AS VARCHAR), -2) END
	FROM months WHERE month < (SELECT max(substr(CAST(date AS VARCHAR), 1, 7)) FROM releases)
), points AS (SELECT month AS period,
	(SELECT max(number) FROM releases WHERE substr(CAST(date AS VARCHAR), 1, 7) <= month) AS release,
	coalesce((SELECT max(number) FROM releases WHERE substr(CAST(date AS VARCHAR), 1, 7) < month), 0) AS before
	FROM months WHERE month <= (SELECT max(substr(CAST(date AS VARCHAR), 1, 7)) FROM releases))`
	// releasePoints has those of series by release.
	releasePoints = `WITH points AS (SELECT CAST(number AS VARCHAR) AS period, number AS release, number - 1 AS before FROM releases)`
	// steps has versions with the previous version of the same tool.
	steps = `, steps AS (SELECT *, lag(active) OVER tool AS was_active, lag(last_release) OVER tool AS was_last
	FROM history WINDOW tool AS (PARTITION BY slug ORDER BY first_release))`
	// priceChanges has the price changes of all tools that are or were active, and the category
	// that each had last.
	priceChanges = `WITH versions AS (SELECT *, row_number() OVER (PARTITION BY slug ORDER BY first_release DESC) AS age, substr(CAST(updated_at AS VARCHAR), 1, 7) AS month,
	lag(price) OVER tool AS old_price, lag(pricing) OVER tool AS old_pricing, lag(price_amount) OVER tool AS old_amount,
	lag(monthly_price) OVER tool AS old_monthly, lag(billing_period) OVER tool AS old_period
	FROM history WHERE active WINDOW tool AS (PARTITION BY slug ORDER BY first_release)),
changes AS (SELECT DISTINCT slug, month, updated_at, price, pricing, old_price, old_pricing, price_amount, old_amount, monthly_price, old_monthly, billing_period, old_period
	FROM versions WHERE price <> old_price OR pricing <> old_pricing),
last AS (SELECT slug, category_slug AS category FROM versions WHERE age = 1) `
	additions = `(SELECT count(*) FROM steps WHERE active AND first_release > (SELECT min(number) FROM releases)
	AND first_release > p.before AND first_release <= p.release AND (was_last IS NULL OR was_last + 1 < first_release OR NOT was_active))`
	retirements = `(SELECT count(*) FROM steps WHERE NOT active AND was_active AND was_last + 1 = first_release
	AND first_release > p.before AND first_release <= p.release)`
)

func sqlMean(column string) string { return fmt.Sprintf(meanOf, column) }

// sqlSeries returns a metric at each point.
func sqlSeries(metric, value string) string {
	return fmt.Sprintf("SELECT '%s' AS metric, p.release AS number, p.period, %s AS value FROM points p", metric, value)
}

func ofActive(value string) string {
	return "(SELECT " + value + " FROM history h WHERE " + fmt.Sprintf(activeIn, "h", "p.release") + ")"
}

// sqlMovers compares two releases.
func sqlMovers(column, from, condition, columns string) string {
	return fmt.Sprintf(`WITH movers AS (SELECT b.slug, a.%[1]s AS was, b.%[1]s AS now, `+fmt.Sprintf(hundredthsOf, "a.%[1]s")+` AS x, `+fmt.Sprintf(hundredthsOf, "b.%[1]s")+` AS y
	FROM history a JOIN history b ON a.slug = b.slug
	WHERE `+fmt.Sprintf(activeIn, "a", "coalesce((SELECT max(number) FROM releases WHERE CAST(date AS VARCHAR) <= '%[2]s'), (SELECT min(number) FROM releases))")+`
	AND `+fmt.Sprintf(activeIn, "b", latest)+`)
SELECT %[4]s FROM movers m JOIN tools t ON t.slug = m.slug LEFT JOIN categories c ON c.slug = t.category_slug
WHERE x <> y AND %[3]s ORDER BY abs(y - x) DESC, m.slug LIMIT 10`, column, from, condition, columns)
}

// object and list are what JSON decodes to.
type (
	object = map[string]any
	list   = []any
)

// maxCost is what a panel may cost in a catalog of 5,000 tools.
const maxCost = 2_000

// variables are those of panels that need them.
var variables = map[string]object{
	"score-movers": {"from": "2026-03-02"}, "price-drops": {"from": "2026-02-01"}, "compared-with": {"tool": "t03"},
	"key-figures": {"from": "2026-10-01"}, "not-updated": {"before": "2026-07-01"},
}

// statement is a panel in SQL, and where GraphQL has the same values: the path of a list, and
// the fields of its items. If it has a query, the SQL is only for DuckDB.
type statement struct {
	sql    string
	list   string
	fields []string
	query  string
}

// statements are our own panels.
var statements = map[string]statement{
	"score-movers": {sqlMovers("score", "2026-03-02", "TRUE", "m.slug, was, now, (y - x) * 1.0 / 100, t.name, c.label"),
		"movers", []string{"slug", "before", "after", "change", "tool.name", "tool.category.label"}, ""},
	"price-drops": {sqlMovers("monthly_price", "2026-02-01", "y < x", "m.slug, was, now, (y - x) * 1.0 / 100, CASE WHEN x > 0 THEN -floor((2 * (x - y) * 10000 + x) * 1.0 / (2 * x)) / 100 END, t.name"),
		"movers", []string{"slug", "before", "after", "change", "percent", "tool.name"}, ""},
	"scores-by-category-and-month": {fmt.Sprintf(months, "0000") + ` SELECT h.category_slug, p.period, ` + sqlMean("h.score") +
		` FROM points p JOIN history h ON ` + fmt.Sprintf(activeIn, "h", "p.release") + ` GROUP BY 1, 2 HAVING count(h.score) > 0 ORDER BY 1, 2`,
		"series.points", []string{"key", "period", "value"}, ""},
	"scores-by-pricing": {`SELECT pricing, CASE WHEN score >= 10 THEN 9 ELSE floor(score) END AS bin, count(*) FROM tools WHERE score IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2`,
		"histograms", []string{"pricing", "from", "count"}, ""},
	"retirements": {`SELECT substr(CAST(retired_at AS VARCHAR), 1, 5) || 'Q' || CAST(floor((CAST(substr(CAST(retired_at AS VARCHAR), 6, 2) AS INTEGER) + 2) * 1.0 / 3) AS INTEGER) AS period, reason, count(*) FROM retired GROUP BY 1, 2 ORDER BY 1, 2`,
		"retirementGroups", []string{"period", "reason", "count"}, ""},
	"good-and-affordable": {`SELECT count(*) OVER (), slug, name, price, monthly_price, billing_period, score FROM tools WHERE (pricing = 'gratuit' OR price_amount = 0 OR monthly_price <= 20) AND score >= 8 ORDER BY monthly_price NULLS LAST, slug LIMIT 20`,
		"tools.items", []string{"total", "slug", "name", "price", "monthlyPrice", "billingPeriod", "score"}, ""},
	"compared-with": {`WITH every AS (SELECT slug, name, score FROM tools UNION ALL SELECT slug, name, score FROM retired)
SELECT count(*) OVER (), c.slug, a.slug, a.name, a.score, b.slug, b.name, b.score, w.name FROM comparisons c
JOIN every a ON a.slug = c.tool_a_slug JOIN every b ON b.slug = c.tool_b_slug JOIN every w ON w.slug = c.winner_slug
WHERE 't03' IN (c.tool_a_slug, c.tool_b_slug) ORDER BY c.updated_at DESC, c.slug LIMIT 20`,
		"comparisons.items", []string{"total", "slug", "toolA.slug", "toolA.name", "toolA.score", "toolB.slug", "toolB.name", "toolB.score", "winnerName"}, ""},
	"win-rates": {`WITH sides AS (SELECT tool_a_slug AS tool, winner_slug FROM comparisons UNION ALL SELECT tool_b_slug, winner_slug FROM comparisons),
rates AS (SELECT tool, count(*) AS n, sum(CASE WHEN tool = winner_slug THEN 1 ELSE 0 END) AS wins FROM sides GROUP BY tool)
SELECT tool, n, wins, floor((20000 * wins + n) * 1.0 / (2 * n)) / 10000 AS rate FROM rates ORDER BY n DESC, tool LIMIT 50`,
		"comparisonGroups", []string{"key", "count", "wins", "winRate"}, ""},
	"newest-tools": {`WITH points AS (SELECT 1)` + steps + ` SELECT s.first_release, s.slug, t.name, c.label, t.monthly_price, t.score
FROM steps s LEFT JOIN tools t ON t.slug = s.slug LEFT JOIN categories c ON c.slug = t.category_slug
WHERE s.active AND (s.was_last IS NULL OR s.was_last + 1 < s.first_release OR NOT s.was_active) ORDER BY s.first_release DESC, s.slug`,
		"changes.nodes", []string{"release", "slug", "tool.name", "tool.category.label", "tool.monthlyPrice", "tool.score"}, ""},
	"price-increases": {priceChanges + `SELECT category, month, count(*) FROM changes JOIN last USING (slug)
WHERE CASE WHEN monthly_price + old_monthly IS NULL THEN billing_period = old_period AND price_amount > old_amount ELSE monthly_price > old_monthly END GROUP BY 1, 2 ORDER BY 2, 1`,
		"priceChangeCounts", []string{"category", "month", "count"}, ""},
	"key-figures": {fmt.Sprintf(months, "2026-10") + steps + ` SELECT metric, period, value FROM (` + strings.Join([]string{
		sqlSeries("count", ofActive("count(*)")), sqlSeries("tested", ofActive("count(h.score)")), sqlSeries("mean_score", ofActive(sqlMean("h.score"))),
		sqlSeries("mean_monthly_price", ofActive(sqlMean("h.monthly_price"))), sqlSeries("additions", additions), sqlSeries("retirements", retirements),
	}, " UNION ALL ") + `) AS figures ORDER BY metric, period`, "series.points", []string{"metric", "period", "value"}, ""},
	"category-by-pricing": {`SELECT category_slug, pricing, ` + sqlMean("score") + `, count(*) FROM tools GROUP BY 1, 2 ORDER BY 1, 2`,
		"toolGroups", []string{"key", "thenKey", "avgScore", "count"}, ""},
	"not-updated": {`SELECT count(*) OVER (), slug, name, CAST(updated_at AS VARCHAR), score FROM tools WHERE CAST(updated_at AS VARCHAR) < '2026-07-01' ORDER BY updated_at, slug LIMIT 20`,
		"tools.items", []string{"total", "slug", "name", "updatedAt", "score"}, ""},
	"monthly-prices": {`WITH ranked AS (SELECT category_slug, monthly_price, row_number() OVER (PARTITION BY category_slug ORDER BY monthly_price) AS place,
	count(*) OVER (PARTITION BY category_slug) AS n FROM tools WHERE monthly_price IS NOT NULL),
medians AS (SELECT category_slug, floor(sum(` + fmt.Sprintf(hundredthsOf, "monthly_price") + `) * 1.0 / count(*) + 0.5) / 100 AS median FROM ranked WHERE 2 * place BETWEEN n AND n + 2 GROUP BY 1)
SELECT t.category_slug, min(monthly_price), max(monthly_price), max(median), ` + sqlMean("monthly_price") + `
FROM tools t LEFT JOIN medians m ON m.category_slug = t.category_slug GROUP BY 1 ORDER BY 1`,
		"toolGroups", []string{"key", "minMonthlyPrice", "maxMonthlyPrice", "medianMonthlyPrice", "avgMonthlyPrice"}, ""},
	"growth": {releasePoints + steps + ` SELECT metric, period, value FROM (` + strings.Join([]string{
		sqlSeries("count", ofActive("count(*)")), sqlSeries("additions", additions), sqlSeries("retirements", retirements),
	}, " UNION ALL ") + `) AS figures ORDER BY metric, number`, "series.points", []string{"metric", "period", "value"}, ""},
}

// The panels of the explorer and those of docs/design in SQL on the files of every release have the values of GraphQL as of it.
func TestPanelsInSQLWithNode(t *testing.T) {
	t.Parallel()
	testkit.NPM(t, "testdata")
	addTwenty(t)
	for _, example := range apidocs.Examples {
		name, isPanel := strings.CutPrefix(example.Name, "panel-")
		check.True(t, !isPanel || statements[name].sql != "", "got no statement for the panel %s, want one", name)
	}
	first := testkit.SeedOr(t, 1)
	for _, seed := range []uint64{first, first + 6} {
		releases := randomFeeds(seed)
		testkit.EachStore(t, func(t *testing.T, s *store.Store) {
			for _, data := range releases {
				feedtest.Publish(t, s, data)
			}
			e := graphtest.New(graph.Config{Catalog: s, Tools: func() int { return 5_000 }})
			names := slices.Sorted(func(yield func(string) bool) {
				for name := range statements {
					if !yield(name) {
						return
					}
				}
			})
			type task struct {
				Folder     string   `json:"folder"`
				Tables     []string `json:"tables"`
				Statements []string `json:"statements"`
			}
			var tasks []task
			for release := range releases {
				work := task{Folder: t.TempDir()}
				written := check.Try(files.Write(t.Context(), s, release+1, work.Folder, files.Kinds{SQLite: true, Parquet: true}, nil)).OK(t)
				for _, f := range written[1:] {
					work.Tables = append(work.Tables, strings.TrimSuffix(f.Name, files.Parquet))
				}
				for _, name := range names {
					work.Statements = append(work.Statements, statements[name].sql)
				}
				tasks = append(tasks, work)
			}
			input, _ := json.Marshal(tasks)
			cmd := exec.CommandContext(t.Context(), "node", "duckdb.mjs")
			cmd.Dir, cmd.Stdin = "testdata", bytes.NewReader(input)
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
			}
			var parquet [][]list
			check.OK(t, json.Unmarshal(out, &parquet))
			compared := 0
			for release, work := range tasks {
				for i, name := range names {
					want, ok := panelRows(t, e, name, release+1)
					if !ok {
						continue
					}
					compared++
					results := map[string]list{"DuckDB": parquet[release][i]}
					if statements[name].query == "" {
						results["SQLite"] = querySQLite(t, filepath.Join(work.Folder, files.SQLiteFile), work.Statements[i])
					}
					for engine, got := range results {
						if got := normalized(got); !reflect.DeepEqual(got, want) {
							t.Errorf("%s as of release %d with %s:\ngot  %v\nwant %v", name, release+1, engine, got, want)
						}
					}
				}
			}
			check.True(t, compared >= 100, "got %d comparisons, want at least 100", compared) // comparisons with a later day are errors
		})
	}
}

var queryHead = regexp.MustCompile(`(?m)^(query \w+(?:\(.*\))?) \{`)

// panelRows returns the values of a panel as of a release, or false if GraphQL rejects it.
func panelRows(t *testing.T, e *graph.Executor, name string, release int) (list, bool) {
	t.Helper()
	statement := statements[name]
	query := fmt.Sprintf("query @asOf(release: %d) %s", release, statement.query)
	if statement.query == "" {
		i := slices.IndexFunc(apidocs.Examples, func(example apidocs.Example) bool { return example.Name == "panel-"+name })
		check.MustTrue(t, i >= 0, "got no panel %s, want one", name)
		query = queryHead.ReplaceAllString(apidocs.Examples[i].Query, fmt.Sprintf("$1 @asOf(release: %d) {", release))
	}
	if name == "newest-tools" { // files do not have the order within a release
		query = strings.NewReplacer("first: 10", "first: 200", "publishedAt", "release").Replace(query)
	}
	got := e.Execute(auth.WithCaller(t.Context(), auth.Caller{Plan: auth.Anonymous}), graph.Request{Query: query, Variables: variables[name]})
	if len(got.Errors) > 0 {
		if strings.Contains(fmt.Sprint(got.Errors), "from") {
			return nil, false
		}
		t.Fatal(got.Errors)
	}
	check.True(t, got.Cost < maxCost || name == "newest-tools", "%s: got a cost of %d, want less than %d", name, got.Cost, maxCost) // which reads more than the panel
	var data object
	check.OK(t, json.Unmarshal(got.Data, &data))
	return normalized(rowsOf(data, statement.list, statement.fields)), true
}

// rowsOf returns fields of the items of a list.
func rowsOf(data object, path string, fields []string) (rows list) {
	var items list
	switch path {
	case "series.points":
		for _, series := range data["series"].(list) {
			for _, point := range series.(object)["points"].(list) {
				item := point.(object)
				item["key"], item["metric"] = series.(object)["key"], series.(object)["metric"]
				if item["value"] != nil || fields[0] == "metric" {
					items = append(items, item)
				}
			}
		}
		if fields[0] == "metric" {
			slices.SortStableFunc(items, func(a, b any) int {
				return strings.Compare(a.(object)["metric"].(string), b.(object)["metric"].(string))
			})
		}
	case "histograms":
		for _, pricing := range []struct{ alias, name string }{{"freemium", "freemium"}, {"free", "gratuit"}, {"paid", "payant"}} {
			for _, bin := range data[pricing.alias].(list) {
				if bin.(object)["count"].(float64) > 0 {
					bin.(object)["pricing"] = pricing.name
					items = append(items, bin)
				}
			}
		}
	default:
		first, second, nested := strings.Cut(path, ".")
		if !nested {
			items = data[first].(list)
			break
		}
		items = data[first].(object)[second].(list)
		if meta, ok := data[first].(object)["meta"].(object); ok {
			for _, item := range items {
				item.(object)["total"] = meta["total"]
			}
		}
		if second == "nodes" {
			slices.SortFunc(items, func(a, b any) int {
				if c := int(b.(object)["release"].(float64) - a.(object)["release"].(float64)); c != 0 {
					return c
				}
				return strings.Compare(a.(object)["slug"].(string), b.(object)["slug"].(string))
			})
		}
	}
	for _, item := range items {
		row := list{}
		for _, field := range fields {
			value := item
			for part := range strings.SplitSeq(field, ".") {
				if nested, ok := value.(list); ok && len(nested) > 0 {
					value = nested[0]
				}
				if members, ok := value.(object); ok {
					value = members[part]
				} else {
					value = nil
				}
			}
			row = append(row, value)
		}
		rows = append(rows, row)
	}
	return rows
}

// normalized makes values comparable: all numbers are floats.
func normalized(rows list) list {
	found := list{}
	for _, row := range rows {
		values := list{}
		for _, value := range row.(list) {
			switch v := value.(type) {
			case int64:
				value = float64(v)
			case float64:
				value = math.Round(v*1e6) / 1e6
			}
			values = append(values, value)
		}
		found = append(found, values)
	}
	return found
}

func querySQLite(t *testing.T, path, statement string) (found list) {
	t.Helper()
	db := check.Try(sql.Open("sqlite", path)).OK(t)
	defer db.Close()
	rows := check.Try(db.QueryContext(t.Context(), statement)).OK(t, statement)
	defer rows.Close()
	columns := check.Try(rows.Columns()).OK(t)
	for rows.Next() {
		row := make(list, len(columns))
		pointers := make([]any, len(columns))
		for i := range row {
			pointers[i] = &row[i]
		}
		check.OK(t, rows.Scan(pointers...))
		found = append(found, row)
	}
	check.OK(t, rows.Err())
	return found
}
