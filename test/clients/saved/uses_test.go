package saved_test

import (
	"encoding/csv"
	"encoding/json"
	"html"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// What the page of a private query has for other programs reads the whole list in each of
// them, once its token or key is filled in.
func TestUsesWithCurlPandasAndDuckDB(t *testing.T) {
	t.Parallel()
	curl, python, node := testkit.Curl.Ensure(t), testkit.Pandas.Ensure(t), testkit.Node.Ensure(t)
	packages := check.Try(filepath.Abs("../../../internal/transport/saved/testdata")).OK(t)
	testkit.NPM(t, packages)
	s := start(t, blackbox.Demo(t))
	key := strings.TrimSpace(s.command(t, "keys", "create", ana, "--name", "curl").Out)
	named, _ := s.save(t, ana, "all", `query($price: Float) {tools(filter: {monthlyCostMax: $price}, limit: 200) {items {slug name score}}}`, "--private")
	_, token, _ := strings.Cut(strings.TrimSpace(s.command(t, "queries", "token", ana, "all").Out), "token=")

	body := s.get(t, named+"?price=500&token="+token, "Accept", "text/html").want(t, 200, "YOUR_TOKEN").body
	codes := map[string]string{}
	for _, found := range regexp.MustCompile(`(?s)<code id="use-(\w+)">(.*?)</code>`).FindAllStringSubmatch(body, -1) {
		codes[found[1]] = strings.NewReplacer("YOUR_TOKEN", token, "YOUR_KEY", key).Replace(html.UnescapeString(found[2]))
	}
	check.Equal(t, len(codes), 6)
	run := func(dir, program string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		check.OK(t, err, string(out))
		return string(out)
	}
	text := run("", "sh", "-c", strings.Replace(codes["curl"], "curl", curl, 1))
	rows := check.Try(csv.NewReader(strings.NewReader(text)).ReadAll()).OK(t)
	check.Slices(t, rows[0], []string{"slug", "name", "score"})
	check.Must(t, len(rows) > 10, true, "rows of curl: "+text)
	want := strconv.Itoa(len(rows) - 1)
	check.Contains(t, run("", python, "-c", codes["pandas"]+"\nprint('rows:', len(table), table.score.dtype)"), "rows: "+want+" float64")
	file := blackbox.WriteFile(t, "all.csv", []byte(text)) // DuckDB has no network without an extension
	statement := regexp.MustCompile(`'.*'`).ReplaceAllString(codes["duckdb"], "'"+file+"'")
	script := `import { DuckDBInstance } from "@duckdb/node-api"; const c = await (await DuckDBInstance.create(":memory:")).connect();
		console.log((await c.runAndReadAll(process.argv[1])).getRows().length)`
	check.Equal(t, strings.TrimSpace(run(packages, node, "--input-type=module", "-e", script, statement)), want)

	var target struct {
		URL     string
		Columns []struct{ Selector string }
	}
	check.OK(t, json.Unmarshal([]byte(codes["grafana"]), &target))
	sheet := regexp.MustCompile(`"(.*)"`).FindStringSubmatch(codes["sheets"])[1]
	for _, address := range []string{target.URL, sheet} {
		check.Equal(t, s.get(t, strings.TrimPrefix(address, "http://"+s.Address)).want(t, 200, "").body, text)
	}
	for i, c := range target.Columns {
		check.Equal(t, c.Selector, rows[0][i])
	}
}
