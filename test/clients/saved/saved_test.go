// Package saved_test tests the commands about saved queries. What servers respond is
// tested in package saved.
package saved_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

const (
	ana, bea = "ana@example.com", "bea@example.com"
	best     = "query Best($limit: Int! = 2) {tools(limit: $limit) {items {slug}}}"
)

// service is a server with two accounts.
type service struct {
	*blackbox.Server
	cfg store.Config
}

func start(t *testing.T, cfg store.Config) *service {
	s := &service{blackbox.Serve(t, cfg, "--demo", "--trusted-proxies", "127.0.0.1"), cfg}
	for _, email := range []string{ana, bea} {
		blackbox.CreateKey(t, cfg, email, "developer")
	}
	return s
}

func (s *service) command(t testing.TB, args ...string) blackbox.Result {
	t.Helper()
	return blackbox.Run(t, blackbox.Command(t, s.cfg, append([]string{"--listen", s.Address}, args...)...))
}

// save saves a query and returns the paths of both URLs.
func (s *service) save(t testing.TB, email, name, text string, flags ...string) (named, permanent string) {
	t.Helper()
	file := blackbox.WriteFile(t, "query.graphql", []byte(text))
	handle, _, _ := strings.Cut(email, "@")
	got := s.command(t, append([]string{"queries", "save", email, name, file, "--handle", handle}, flags...)...)
	check.Must(t, got.Code, 0, "exit code")
	check.Equal(t, got.Err, "", "what it prints beside the URLs")
	paths := strings.Fields(strings.ReplaceAll(got.Out, "http://"+s.Address, ""))
	return paths[0], paths[1]
}

// got is a response.
type got struct {
	*http.Response
	body string
}

var clients atomic.Int64

// get sends a request from its own IP address, because anonymous callers have a
// quota.
func (s *service) get(t testing.TB, path string, headers ...string) got {
	t.Helper()
	headers = append([]string{"X-Forwarded-For", fmt.Sprintf("2001:db8:0:%x::1", clients.Add(1))}, headers...)
	response := s.Call(t, http.MethodGet, path, "", headers...)
	return got{response, blackbox.ReadAll(t, response.Body)}
}

// want checks the status and a part of the body.
func (g got) want(t testing.TB, status int, part string) got {
	t.Helper()
	check.Equal(t, g.StatusCode, status, g.Request.URL)
	check.Contains(t, g.body, part, g.Request.URL)
	return g
}

// The commands print URLs, tokens and states, and explain what is wrong.
func TestCommands(t *testing.T) {
	t.Parallel()
	s := start(t, blackbox.Demo(t))
	named, permanent := s.save(t, ana, "best", best, "--private", "--description", "Best tools")
	check.True(t, named == "/q/ana/best" && regexp.MustCompile(`^/q/[0-9a-f]{32}$`).MatchString(permanent), "got %s and %s, want the URLs by name and by hash", named, permanent)
	printed := strings.TrimSpace(s.command(t, "queries", "token", ana, "best").Out)
	address, token, _ := strings.Cut(printed, "?")
	check.Equal(t, address, "http://"+s.Address+named, printed)
	s.get(t, named+"?"+token).want(t, 200, `[{"slug":`)
	file := blackbox.WriteFile(t, "query.graphql", []byte(best))
	for _, c := range []struct {
		code int
		args string
		want string
	}{
		{0, "queries check", "All saved queries are valid."},
		{0, "queries list " + ana, "private, token"},
		{0, "queries show " + ana + " best", "\n\nBest tools\n\nquery Best("},
		{0, "queries token " + ana + " best --revoke", "The token was revoked."},
		{1, "queries save " + bea + " x " + file + " --handle palmares", "reserved"},
		{0, "queries delete " + ana + " best", "Deleted best."},
		{1, "queries delete " + ana + " best", `no saved query named "best"`},
	} {
		got := s.command(t, strings.Fields(c.args)...)
		check.True(t, got.Code == c.code && strings.Contains(got.Out+got.Err, c.want), "%s: got %d %s%s, want %d and %s", c.args, got.Code, got.Out, got.Err, c.code, c.want)
	}
	wait.Until(t, "the deleted query", func() bool { return s.get(t, named).StatusCode == 404 })

	// A query that an earlier version allowed.
	s.save(t, bea, "old", best)
	db := testkit.Open(t, s.cfg)
	row := check.Try(db.Read.SavedQuery.Query().Only(t.Context())).OK(t)
	check.OK(t, db.Write.QueryVersion.Create().SetHash("0f0f").SetAccountID(row.AccountID).SetText("{tools {items {oldField}}}").SetPublic(true).Exec(t.Context()))
	check.OK(t, db.Write.SavedQuery.UpdateOneID(row.ID).SetHash("0f0f").SetBrokenReason("Line 1: gone").Exec(t.Context()))
	got := s.command(t, "queries", "check")
	check.True(t, got.Code == 1 && strings.HasPrefix(got.Out, bea+"  old  Line 1: Cannot query field") && strings.Count(got.Out, "\n") == 1, "got %d %s %s, want the old query", got.Code, got.Out, got.Err)
	shown := s.command(t, "queries", "show", bea, "old").Out
	check.True(t, strings.Contains(shown, "no longer valid") && strings.Contains(shown, "reason     Line 1: "), "got %s, want the reason", shown)
}

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
