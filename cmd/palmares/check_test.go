package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/folder"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// laterDemo is the demo catalog with another price and score.
func laterDemo(t *testing.T) string {
	t.Helper()
	data := bytes.Replace(demo.Catalog(), []byte(`"score":8.6`), []byte(`"score":8.1`), 1)
	data = bytes.Replace(data, []byte(`"updated_at":"2026-11-10"`), []byte(`"updated_at":"2026-11-11"`), 1)
	if bytes.Equal(data, demo.Catalog()) {
		t.Fatal("got the demo catalog, want other values")
	}
	return blackbox.WriteFile(t, "later.ndjson", data)
}

func TestDiffCommand(t *testing.T) {
	t.Parallel()
	file, later := blackbox.WriteFile(t, "demo.ndjson", demo.Catalog()), laterDemo(t)
	const scores = "### Score changes (1)\n\n| slug | old | new | change |\n|---|---:|---:|---:|\n| atelier-nova | 8.6 | 8.1 | -5.8% |\n"
	testkit.EachNew(t, func(t *testing.T, cfg store.Config) {
		status := func() string { return blackbox.MustRun(t, blackbox.Command(t, cfg, "migrate", "status")).Out }
		if cfg.DatabaseURL == "" {
			cfg.DataDir = filepath.Join(cfg.DataDir, "none")
			if r := blackbox.MustRun(t, blackbox.Command(t, cfg, "diff", file)); !strings.Contains(r.Out, "compared with an empty catalog:\n\n- **Tools**: 48 added,") {
				t.Errorf("without a database: got %s, want 48 tools", r.Out)
			}
			if _, err := os.Stat(cfg.DataDir); err == nil {
				t.Error("without a database: got a data folder, want none")
			}
		}
		before := status() // creates the embedded database
		if r := blackbox.Run(t, blackbox.Command(t, cfg, "diff", file)); r.Code != 1 || !strings.Contains(r.Err, "are pending: run palmares migrate up") || r.Out != "" {
			t.Errorf("pending migrations: got exit code %d and %q, want 1 and what to do", r.Code, r.Err)
		}
		check.Equal(t, status(), before, "pending migrations: afterwards")
		blackbox.MustRun(t, blackbox.Command(t, cfg, "import", file))
		r := blackbox.MustRun(t, blackbox.Command(t, cfg, "diff", later))
		if !strings.Contains(r.Out, "compared with release 1 (2026-11-10):") || !strings.Contains(r.Out, scores) || r.Err != "" {
			t.Errorf("got %s%s, want the score", r.Out, r.Err)
		}
		check.Equal(t, blackbox.MustRun(t, blackbox.Command(t, cfg, "export")).Out, string(demo.Catalog()), "another catalog after the diff")
		small := blackbox.WriteFile(t, "small.ndjson", feedtest.Catalog("2026-11-10", feedtest.Tool("seul")))
		if r := blackbox.MustRun(t, blackbox.Command(t, cfg, "diff", small)); !strings.Contains(r.Out, "would refuse this feed**: the feed would remove or retire 48 of 48 active tools") || !strings.Contains(r.Out, "### Removed tools (58)") {
			t.Errorf("implausible feed: got %s, want the refusal and the diff", r.Out)
		}
		checkDiffJSON(t, blackbox.MustRun(t, blackbox.Command(t, cfg, "diff", "--format", "json", later)).Out)
	})
	// Two feeds need no database.
	nowhere := store.Config{DatabaseURL: "postgres://localhost:1/none", DataDir: "data"}
	cmd := blackbox.Command(t, nowhere, "diff", later, "--against", file)
	temporary := t.TempDir()
	cmd.Env = append(cmd.Env, "TMPDIR="+temporary)
	r := blackbox.MustRun(t, cmd)
	check.Contains(t, r.Out, "compared with "+file+" (2026-11-10):", "two feeds: want the score")
	check.Contains(t, r.Out, scores, "two feeds: want the score")
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("got temporary files %v, want none", left)
	}
	invalid := blackbox.WriteFile(t, "invalid.ndjson", []byte("{}\n"))
	for _, args := range [][]string{{"diff", invalid, "--against", file}, {"diff", later, "--against", invalid}} {
		if r := blackbox.Run(t, blackbox.Command(t, nowhere, args...)); r.Code != 1 || !strings.HasSuffix(r.Err, "palmares: "+invalid+": the feed is invalid\n") {
			t.Errorf("%v: got exit code %d and %q, want 1 and the invalid feed", args, r.Code, r.Err)
		}
	}
}

// The names in the JSON are documented, so they stay as they are.
func checkDiffJSON(t *testing.T, out string) {
	t.Helper()
	var diff struct {
		UpdatedAt string                    `json:"updated_at"`
		Release   int                       `json:"release"`
		Base      map[string]any            `json:"base"`
		Summary   map[string]publish.Counts `json:"summary"`
		Tools     []map[string]any          `json:"tools"`
		Others    []any                     `json:"comparatifs"`
		Scores    []map[string]any          `json:"score_changes"`
		Prices    []any                     `json:"price_changes"`
		Events    map[string]int            `json:"events"`
	}
	check.OK(t, json.Unmarshal([]byte(out), &diff))
	got := fmt.Sprint(diff.UpdatedAt, diff.Release, diff.Base, diff.Summary["tools"], diff.Tools, diff.Others != nil, diff.Scores, diff.Prices != nil, diff.Events)
	const want = "2026-11-112 map[release:1 updated_at:2026-11-10] {0 1 57 0 0} [map[change:updated fields:[score] name:Atelier Nova slug:atelier-nova type:tool]] true " +
		"[map[new:8.1 old:8.6 percent:-5.81 slug:atelier-nova]] true map[catalog.published:1 embeddings.changed:1 tool.updated:1]"
	check.Equal(t, got, want)
}

func TestLintCommand(t *testing.T) {
	t.Parallel()
	url := "https://palmares.example/avis"
	review := func(t *record.Tool) { t.AvisURL, t.Sections = &url, nil }
	var clean []any
	for _, slug := range []string{"plume", "ecritoire", "gorge", "alcove"} {
		clean = append(clean, feedtest.Tool(slug, func(t *record.Tool) {
			t.UpdatedAt = "2026-11-08"
			if len(clean) > 1 {
				t.Category = "voix"
			}
		}))
	}
	file := func(name string, records ...any) string {
		return blackbox.WriteFile(t, name, feedtest.Catalog("2026-11-10", append(clean, records...)...))
	}
	old := file("old.ndjson", feedtest.Tool("vieux"))
	warned := file("warned.ndjson", feedtest.Tool("vide", review))
	wrong := file("wrong.ndjson", feedtest.Tool("vide", review), feedtest.Tool("copie", func(t *record.Tool) { t.Domain = "WWW.plume.example" }))
	invalid := blackbox.WriteFile(t, "in%valid,.ndjson", bytes.Replace(feedtest.Catalog("2026-11-10", clean...), []byte("7.5"), []byte("75"), 1))
	warning := warned + `:8: warning: tool "vide": avis_url: the tool has a review, but no sections; add them, or remove avis_url [empty-review]` + "\n"
	for name, c := range map[string]struct {
		args     []string
		code     int
		out, err string
	}{
		"clean":        {[]string{file("clean.ndjson")}, 0, "", "0 errors, 0 warnings\n"},
		"warning":      {[]string{warned}, 0, warning, "0 errors, 1 warning\n"},
		"strict":       {[]string{warned, "--strict"}, 1, warning, "palmares: 0 errors, 1 warning\n"},
		"error":        {[]string{wrong}, 1, strings.Replace(warning, warned, wrong, 1) + wrong + `:9: tool "copie": domain: "WWW.plume.example" is also the domain of tool "plume"; keep one of the records [duplicate-domain]` + "\n", "palmares: 1 error, 1 warning\n"},
		"not stale":    {[]string{old, "--stale", "30", "--today", "2026-12-01"}, 0, "", "0 errors, 0 warnings\n"},
		"stale":        {[]string{old, "--stale", "29", "--today", "2026-12-01"}, 0, old + `:8: warning: tool "vieux": updated_at: the record was last updated or checked on 2026-11-01; check it, and set updated_at [stale]` + "\n", "0 errors, 1 warning\n"},
		"future":       {[]string{old, "--today", "2026-11-09"}, 1, old + ":1: feed: updated_at: 2026-11-10 is in the future; correct it [future-date]\n", "palmares: 1 error, 0 warnings\n"},
		"invalid":      {[]string{invalid}, 1, invalid + `:4: tool "plume": score: must be at most 10 (got 75) [invalid]` + "\n", "palmares: 1 error, 0 warnings\n"},
		"github":       {[]string{invalid, "--format", "github"}, 1, "::error file=" + strings.NewReplacer("%", "%25", ",", "%2C").Replace(invalid) + `,line=4,title=invalid::tool "plume": score: must be at most 10 (got 75)` + "\n", "palmares: 1 error, 0 warnings\n"},
		"no file":      {[]string{"/nowhere/feed"}, 2, "", "palmares: /nowhere/feed: no such file or directory\n"},
		"no argument":  {nil, 2, "", "palmares: lint: expected either the path of a feed, or --explain with the name of a rule\n"},
		"explain":      {[]string{"--explain", "small-category"}, 0, "small-category (warning)\nA category has one active tool or none, so there is nothing to compare. Add tools, or move the tool and remove the category.\n", ""},
		"unknown rule": {[]string{"--explain", "smal-category"}, 2, "", "palmares: there is no rule \"smal-category\"; did you mean small-category?\n"},
		"json": {[]string{wrong, "--format", "json"}, 1, fmt.Sprintf(`{
  "findings": [
    {
      "file": %[1]q,
      "line": 8,
      "record": "tool \"vide\"",
      "path": "avis_url",
      "rule": "empty-review",
      "severity": "warning",
      "message": "the tool has a review, but no sections; add them, or remove avis_url"
    },
    {
      "file": %[1]q,
      "line": 9,
      "record": "tool \"copie\"",
      "path": "domain",
      "rule": "duplicate-domain",
      "severity": "error",
      "message": "\"WWW.plume.example\" is also the domain of tool \"plume\"; keep one of the records"
    }
  ],
  "errors": 1,
  "warnings": 1,
  "more": false
}
`, wrong), "palmares: 1 error, 1 warning\n"},
	} {
		r := blackbox.Run(t, blackbox.Command(t, store.Config{DataDir: "data"}, append([]string{"lint"}, c.args...)...))
		if r.Code != c.code || r.Out != c.out || r.Err != c.err {
			t.Errorf("%s: got exit code %d and\n%s%s\nwant %d and\n%s%s", name, r.Code, r.Out, r.Err, c.code, c.out, c.err)
		}
	}
}

// Errors are shown in place of warnings, and the summary counts what is not shown.
func TestLintShowsErrorsFirst(t *testing.T) {
	t.Parallel()
	var records []any
	for i := range 150 {
		records = append(records, feedtest.Tool(fmt.Sprint("t", i), func(t *record.Tool) { t.Name = "Même nom" }))
	}
	records = append(records, feedtest.Tool("fin", func(t *record.Tool) { t.Domain = "t0.example" }))
	file := blackbox.WriteFile(t, "many.ndjson", feedtest.Catalog("2026-11-10", records...))
	r := blackbox.Run(t, blackbox.Command(t, store.Config{DataDir: "data"}, "lint", file))
	if r.Code != 1 || strings.Count(r.Out, "\n") != 100 || !strings.HasPrefix(r.Out, file+":154: tool \"fin\": domain: ") ||
		r.Err != "palmares: 1 error, 150 warnings; only 100 are shown, --format json lists all\n" {
		t.Errorf("got exit code %d, %s%s, want the error and 99 warnings", r.Code, r.Out, r.Err)
	}
	r = blackbox.Run(t, blackbox.Command(t, store.Config{DataDir: "data"}, "lint", file, "--format", "json"))
	check.Equal(t, strings.Count(r.Out, `"rule": `), 151, "json: findings")
}

// demoFolder returns a copy of the demo catalog's folder, with some texts replaced: the
// name of a file, then pairs of old and new texts.
func demoFolder(t *testing.T, edits ...[]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "catalog")
	check.OK(t, os.CopyFS(dir, os.DirFS("../../internal/catalog/feed/demo/catalog")))
	for _, edit := range edits {
		name := filepath.Join(dir, edit[0])
		data, err := os.ReadFile(name)
		check.OK(t, err)
		text := strings.NewReplacer(edit[1:]...).Replace(string(data))
		if text == string(data) {
			t.Fatalf("%s: got no change, want %q", edit[0], edit[1:])
		}
		check.OK(t, os.WriteFile(name, []byte(text), 0o644))
	}
	return dir
}

func lintFolder(t *testing.T, dir string, args ...string) blackbox.Result {
	t.Helper()
	return blackbox.Run(t, blackbox.Command(t, store.Config{DataDir: "data"}, append([]string{"lint", dir, "--today", "2026-11-17"}, args...)...))
}

func TestLintFolder(t *testing.T) {
	t.Parallel()
	if r := lintFolder(t, demoFolder(t)); r.Code != 0 || !strings.HasPrefix(r.Err, "0 errors, ") {
		t.Errorf("demo: got exit code %d and %s%s, want no errors", r.Code, r.Out, r.Err)
	}
	dir := demoFolder(t, []string{"tools/plume.md", "domain: plume.example", "domain: www.atelier-nova.example"},
		[]string{"tools/palimpseste-21.md", "lint:disable empty-review --", "lint:disable empty-reviews --"},
		[]string{"tools/tricot-404.md", "lint:disable empty-review --", "lint:disable empty-review #"},
		[]string{"categories.yml", "- slug: agents", "# lint:ignore\n- slug: agents"})
	r := lintFolder(t, dir)
	for _, want := range []string{
		"categories.yml:1:1: the comment is not understood; write # lint:disable similar-name -- two products of one maker [lint-comment]\ntools/",
		"tools/palimpseste-21.md:2:1: there is no rule \"empty-reviews\"; did you mean empty-review? [lint-comment]\n",
		"tools/palimpseste-21.md:12:11: warning: avis_url: ",
		"tools/plume.md:3:9: domain: \"www.atelier-nova.example\" is also the domain of tool \"atelier-nova\"; keep one of the records [duplicate-domain]\n",
		"tools/tricot-404.md:2:1: a reason is required; write ",
	} {
		check.Contains(t, r.Out, want)
	}
	if r.Code != 1 || strings.Contains(r.Out, "brouillon-zero") || r.Err != "palmares: 4 errors, 2 warnings\n" {
		t.Errorf("got exit code %d and\n%s%s\nwant 1, 4 errors and 2 warnings", r.Code, r.Out, r.Err)
	}
	// On GitHub, paths start where the command runs.
	cmd := blackbox.Command(t, store.Config{DataDir: "data"}, "lint", "catalog", "--format", "github")
	cmd.Dir = filepath.Dir(dir)
	want := "::error file=catalog/tools/plume.md,line=3,col=9,title=duplicate-domain::domain: \"www.atelier-nova.example\""
	if r := blackbox.Run(t, cmd); r.Code != 1 || !strings.Contains(r.Out, want) {
		t.Errorf("got %s, want %s", r.Out, want)
	}
	r = lintFolder(t, demoFolder(t, []string{"tools/plume.md", "price: ", "prise: "}))
	if r.Code != 1 || !strings.Contains(r.Out, "tools/plume.md:") || !strings.Contains(r.Out, ": prise: is not a known field; did you mean price? [invalid]\n") {
		t.Errorf("invalid folder: got exit code %d and %s, want the misspelled field", r.Code, r.Out)
	}
	if r := lintFolder(t, t.TempDir()); r.Code != 2 || !strings.Contains(r.Err, ": is not a catalog folder: it has no catalog.yml; ") {
		t.Errorf("empty folder: got exit code %d and %s, want 2", r.Code, r.Err)
	}
}

func TestDiffOfFolders(t *testing.T) {
	t.Parallel()
	base, changed := demoFolder(t), demoFolder(t, []string{"tools/plume.md", "score: 8.1", "score: 8.3"})
	r := blackbox.MustRun(t, blackbox.Command(t, store.Config{DataDir: "data"}, "diff", changed, "--against", base))
	check.Contains(t, r.Out, "\n| plume | 8.1 | 8.3 | +2.5% |\n", "want the score")
}

// TestLintOf10000Files counts CPU time, which other processes do not extend.
func TestLintOf10000Files(t *testing.T) {
	testkit.FullTier(t, "it writes 10,000 files")
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "catalog")
	var lines bytes.Buffer
	check.OK(t, synth.Write(t.Context(), &lines, synth.Options{Tools: 8000, Seed: 1}))
	files, err := folder.NewWriter(dir, record.Header{Format: record.FormatVersion, UpdatedAt: "2026-11-10"})
	check.OK(t, err)
	_, err = feed.Read(t.Context(), feed.NewLines(bytes.NewReader(lines.Bytes())), func(_ int, rec record.Record) { check.OK(t, files.Write(rec)) })
	check.OK(t, err)
	check.OK(t, files.Close(nil))
	if names, err := filepath.Glob(filepath.Join(dir, "*", "*.md")); err != nil || len(names) < 10_000 {
		t.Fatalf("got %d files, want at least 10,000", len(names))
	}
	cmd := blackbox.Command(t, store.Config{DataDir: "data"}, "lint", dir)
	r := blackbox.Run(t, cmd)
	if used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); used > 5*time.Second || r.Code != 0 {
		t.Errorf("got exit code %d after %v of CPU time, want 0 in less than 5 s: %s", r.Code, used, r.Err)
	}
}
