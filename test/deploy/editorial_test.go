package deploy_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// editorialFile returns the path of a file in deploy/editorial.
func editorialFile(t *testing.T, name string) string {
	t.Helper()
	path := check.Try(filepath.Abs(filepath.Join("..", "..", "deploy", "editorial", name))).OK(t)
	deployFile(t, "editorial/"+name) // must exist, for the test cache too
	return path
}

// editors is the repository of a catalog, with a clone that editors work in.
type editors struct {
	*testing.T
	remote, clone string
}

func newEditors(t *testing.T) *editors {
	t.Helper()
	dir := t.TempDir()
	e := &editors{t, filepath.Join(dir, "catalog.git"), filepath.Join(dir, "clone")}
	gitIn(t, dir, "init", "--quiet", "--bare", "--initial-branch=main", e.remote)
	gitIn(t, dir, "init", "--quiet", "--initial-branch=main", e.clone)
	for name, value := range map[string]string{"user.name": "Éditrice", "user.email": "editor@palmares.example", "commit.gpgSign": "false"} {
		e.git("config", name, value)
	}
	e.git("remote", "add", "origin", e.remote)
	return e
}

func (e *editors) git(args ...string) string {
	e.Helper()
	return gitIn(e.T, e.clone, args...)
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(testkit.Git.Ensure(t), args...)
	cmd.Dir = dir
	return strings.TrimSpace(blackbox.MustRun(t, cmd).Out)
}

// commit writes files, or removes those without text, and pushes the branch.
func (e *editors) commit(files map[string]string, push ...string) (commit string) {
	e.Helper()
	for name, text := range files {
		path := filepath.Join(e.clone, filepath.FromSlash(name))
		if text == "" {
			if err := os.Remove(path); err != nil {
				e.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			e.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			e.Fatal(err)
		}
	}
	e.git("add", "--all")
	e.git("commit", "--quiet", "--message", "Edit the catalog")
	e.git(append([]string{"push", "--quiet", "origin", "HEAD:main"}, push...)...)
	return e.git("rev-parse", "HEAD")
}

// toolFile is the file of a tool with this price.
func toolFile(name, price string) string {
	slug := strings.ToLower(name)
	return fmt.Sprintf(`---
name: %s
domain: %s.example
category: code
icp: mixte
pricing: payant
price: %s
score: 7.5
tagline: Un outil nommé %[1]s.
canonical_url: https://palmares.example/outils/%[2]s
alternatives_url: https://palmares.example/alternatives/%[2]s
updated_at: 2026-11-01
---

## verdict

Bien.
`, name, slug, price)
}

// firstCatalog returns the files of a catalog with two tools.
func firstCatalog() map[string]string {
	return map[string]string{
		"catalog/catalog.yml":        "format: 1\nupdated_at: 2026-11-01\n",
		"catalog/categories.yml":     "- slug: code\n  label: Code\n",
		"catalog/tools/plume.md":     toolFile("Plume", "20 €/mois"),
		"catalog/tools/ecritoire.md": toolFile("Ecritoire", "10 €/mois"),
		"README.md":                  "Not part of the catalog.\n",
	}
}

// publishCommand returns a run of the publish script, with other settings.
func publishCommand(t *testing.T, cfg store.Config, settings ...string) *exec.Cmd {
	t.Helper()
	cmd := blackbox.Command(t, cfg)
	cmd.Path, cmd.Args = editorialFile(t, "publish"), []string{"publish"}
	cmd.Env = append(append(cmd.Env, "PATH="+filepath.Dir(blackbox.Path(t))+":"+os.Getenv("PATH")), settings...)
	return cmd
}

// Nothing but a commit that follows the published one and passes all checks changes the
// catalog.
func TestPublishWithGit(t *testing.T) {
	t.Parallel()
	e, cfg := newEditors(t), testkit.SQLite(t)
	state := filepath.Join(t.TempDir(), "new", "state")
	command := func(settings ...string) *exec.Cmd {
		return publishCommand(t, cfg, append([]string{"CATALOG_REPOSITORY=" + e.remote, "CATALOG_STATE=" + state}, settings...)...)
	}
	catalog := ""
	published := func(what string, commit, contains string) {
		t.Helper()
		r := blackbox.Run(t, command())
		check.MustTrue(t, r.Code == 0 && strings.HasSuffix(r.Err, "publish: "+commit+" is published\n"), "%s: got exit code %d and %s%s, want %s published", what, r.Code, r.Out, r.Err, commit)
		if catalog = blackbox.MustRun(t, blackbox.Command(t, cfg, "export")).Out; !strings.Contains(catalog, contains) {
			t.Fatalf("%s: got %s, want it to contain %s", what, catalog, contains)
		}
	}
	refused := func(what, reason string, settings ...string) {
		t.Helper()
		r := blackbox.Run(t, command(settings...))
		lines := strings.Split(strings.TrimSpace(r.Err), "\n")
		if last := lines[len(lines)-1]; r.Code == 0 || !strings.Contains(last, "publish: ") || !strings.Contains(r.Out+r.Err, reason) {
			t.Errorf("%s: got exit code %d and %s%s, want a failure with %q", what, r.Code, r.Out, r.Err, reason)
		}
		check.Must(t, blackbox.MustRun(t, blackbox.Command(t, cfg, "export")).Out, catalog, "%s: another catalog", what)
	}
	plume := func(price string) map[string]string {
		return map[string]string{"catalog/tools/plume.md": toolFile("Plume", price)}
	}

	published("first commit", e.commit(firstCatalog()), `"20 €/mois"`)
	r := blackbox.MustRun(t, command())
	check.True(t, r.Out == "" && strings.HasSuffix(r.Err, "is already published\n"), "unchanged commit: got %s%s, want nothing but a line that says so", r.Out, r.Err)
	published("new price", e.commit(plume("25 €/mois")), `"25 €/mois"`)

	// Commits that must not be published.
	e.commit(plume("25 euros"))
	refused("invalid price", "tools/plume.md:7:8: ")
	refused("invalid price, again", "did not pass palmares lint; the catalog is unchanged")
	published("correction", e.commit(plume("26 €/mois")), `"26 €/mois"`)
	e.commit(map[string]string{"catalog/tools/ecritoire.md": ""})
	refused("removal of half of the tools", "is not published")
	published("return of the tool", e.commit(map[string]string{"catalog/tools/ecritoire.md": toolFile("Ecritoire", "11 €/mois")}), `"11 €/mois"`)
	e.git("mv", "catalog", "elsewhere")
	check.OK(t, os.Symlink(filepath.Join(e.clone, "elsewhere"), filepath.Join(e.clone, "catalog")))
	e.commit(nil)
	refused("link to another folder", "has no folder catalog")
	e.git("rm", "--quiet", "catalog")
	e.git("mv", "elsewhere", "catalog")
	e.commit(nil)
	published("folder", e.commit(plume("27 €/mois")), `"27 €/mois"`)
	refused("no such folder", "has no folder other", "CATALOG_FOLDER=other", "CATALOG_BRANCH=main", "CATALOG_STATE="+t.TempDir())
	refused("no such branch", "cannot fetch the branch other; the catalog is unchanged", "CATALOG_BRANCH=other")
	refused("unreachable repository", "cannot fetch the branch main; the catalog is unchanged", "CATALOG_REPOSITORY="+e.remote+"x")
	refused("unreachable server", "cannot fetch the branch main; the catalog is unchanged", "CATALOG_REPOSITORY=http://127.0.0.1:1/catalog.git")
	if r := blackbox.Run(t, command("CATALOG_REPOSITORY=")); r.Code == 0 || !strings.Contains(r.Err, "CATALOG_REPOSITORY: is not set") {
		t.Errorf("no repository: got exit code %d and %s, want a failure that names the setting", r.Code, r.Err)
	}

	// A rewritten branch is only published if an operator decides so.
	e.git("reset", "--quiet", "--hard", "HEAD~1")
	rewritten := e.commit(plume("28 €/mois"), "--force")
	refused("rewritten branch", "the branch main was rewritten: "+rewritten)
	check.OK(t, os.Remove(filepath.Join(state, "published")))
	published("rewritten branch that an operator accepts", rewritten, `"28 €/mois"`)

	// Damage to what was fetched, and what a run leaves that is killed.
	e.commit(plume("29 euros"))
	refused("invalid price", "did not pass palmares lint")
	for _, damage := range []struct {
		name string
		do   func(file string, size int64) error
	}{
		{"truncated objects", func(file string, size int64) error {
			return errors.Join(os.Chmod(file, 0o644), os.Truncate(file, size/2))
		}},
		{"missing objects", func(file string, _ int64) error { return os.Remove(file) }},
	} {
		packs, err := filepath.Glob(filepath.Join(state, "fetched.git", "objects", "pack", "*.pack"))
		check.MustTrue(t, err == nil && len(packs) != 0, "got packs %v and %v, want some", packs, err)
		for _, pack := range packs {
			info, err := os.Stat(pack)
			if err == nil {
				err = damage.do(pack, info.Size())
			}
			check.OK(t, err)
		}
		refused(damage.name, "; the catalog is unchanged")
	}
	check.OK(t, os.RemoveAll(filepath.Join(state, "fetched.git")))
	for _, name := range []string{"fetched.git/refs/heads/fetched.lock", "fetched.git/objects/pack/tmp_pack_1", "index.lock", "checkout/catalog/tools/left.md", "published.new"} {
		path := filepath.Join(state, filepath.FromSlash(name))
		check.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check.OK(t, os.WriteFile(path, []byte("left"), 0o644))
	}
	published("after a run that was killed", e.commit(plume("29 €/mois")), `"29 €/mois"`)

	// Runs exclude each other.
	lock := check.Try(os.Open(filepath.Join(state, "lock"))).OK(t)
	check.OK(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	commit := e.commit(plume("30 €/mois"))
	refused("another run", "another run is in progress; the catalog is unchanged")
	_ = lock.Close()
	var runs sync.WaitGroup
	results := make([]blackbox.Result, 4)
	for i := range results {
		cmd := command()
		runs.Go(func() { results[i] = blackbox.Run(t, cmd) })
	}
	runs.Wait()
	times := 0
	for _, r := range results {
		switch {
		case r.Code == 0 && strings.HasSuffix(r.Err, commit+" is published\n"):
			times++
		case r.Code == 0 && strings.HasSuffix(r.Err, "is already published\n"), r.Code == 1 && strings.Contains(r.Err, "another run is in progress"):
		default:
			t.Errorf("one of several runs: got exit code %d and %s%s, want it published, already published or refused", r.Code, r.Out, r.Err)
		}
	}
	check.Equal(t, times, 1, "several runs at once: that published")
}

// The workflow runs commands of a pull request without secrets, and its steps work in a
// checkout.
func TestWorkflowWithGit(t *testing.T) {
	t.Parallel()
	workflow := documents(t, "editorial/workflow.yml")[0]
	if events := keysOf(workflow["on"]); !slices.Equal(events, []string{"pull_request", "push"}) || fmt.Sprint(at(workflow, "on", "push", "branches")) != "[main]" {
		t.Errorf("got events %v, want pull_request, and push to main", workflow["on"])
	}
	check.Equal(t, fmt.Sprint(workflow["permissions"]), "map[contents:read]", "permissions")
	got := at(workflow, "jobs", "publish", "if")
	check.True(t, got == "github.event_name == 'push'" && at(workflow, "jobs", "publish", "needs") == "check", "got a job publish if %v, want it after check, on push only", got)
	for _, name := range keysOf(workflow["jobs"]) {
		job := at(workflow, "jobs", name)
		check.True(t, strings.Contains(fmt.Sprint(job), "secrets.") == (name == "publish"), "job %s: want secrets in publish only", name)
		permissions, given := job.(map[string]any)["permissions"]
		check.True(t, (!given || fmt.Sprint(permissions) == "map[]") && at(job, "timeout-minutes") != nil, "job %s: got permissions %v, want no more than the workflow has, and a timeout", name, permissions)
		for _, step := range at(job, "steps").([]any) {
			uses, ok := at(step, "uses").(string)
			check.True(t, !ok || regexp.MustCompile(`@(v\d+|[0-9a-f]{40})$`).MatchString(uses), "got action %s, want a pinned version", uses)
			run, _ := at(step, "run").(string)
			check.True(t, !strings.Contains(run, "${{"), "got an expression in %s, want it in env, where the shell does not run it", run)
		}
	}

	e := newEditors(t)
	empty := e.commit(map[string]string{"README.md": "No catalog yet.\n"})
	first := e.commit(firstCatalog())
	program := check.Try(os.ReadFile(blackbox.Path(t))).OK(t)
	downloads := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(program) }))
	t.Cleanup(downloads.Close)
	testkit.Curl.Ensure(t)
	valid := map[string]string{"PROGRAM_URL": downloads.URL, "PROGRAM_SHA256": fmt.Sprintf("%x", sha256.Sum256(program))}

	for _, c := range []struct {
		name, base string
		plume      string            // its price in the pull request
		env        map[string]string // instead of the workflow's
		fails      string            // the first step that fails
		output     string            // of all steps
		summary    string
	}{
		{"new price", first, "25 €/mois", valid, "", "", "25 €/mois"},
		{"first catalog", empty, "20 €/mois", valid, "", "", "plume"},
		{"mistyped price", first, "25 euros", valid, "Check the catalog", "::error file=catalog/tools/plume.md,line=7,col=8", ""},
		{"another program", first, "25 €/mois", map[string]string{"PROGRAM_URL": downloads.URL}, "Install palmares", "FAILED", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &editors{t, e.remote, e.clone}
			// The merge of the pull request, whose first parent is the branch.
			e.git("checkout", "--quiet", "--detach", first)
			check.OK(t, os.WriteFile(filepath.Join(e.clone, "catalog", "tools", "plume.md"), []byte(toolFile("Plume", c.plume)), 0o644))
			e.git("add", "--all")
			tree := e.git("write-tree")
			edit := e.git("commit-tree", "-p", c.base, "-m", "Edit", tree)
			e.git("push", "--quiet", "--force", "origin", e.git("commit-tree", "-p", c.base, "-p", edit, "-m", "Merge", tree)+":refs/pull/1/merge")
			e.git("reset", "--quiet", "--hard")
			r := newRunner(t, workflow, c.env)
			gitIn(t, r.dir, "init", "--quiet")
			gitIn(t, r.dir, "fetch", "--quiet", "--depth=2", "file://"+e.remote, "refs/pull/1/merge")
			gitIn(t, r.dir, "checkout", "--quiet", "FETCH_HEAD")
			failed, output := r.run("check", nil)
			check.Equal(t, failed, c.fails)
			check.Contains(t, output, c.output)
			summary, _ := os.ReadFile(filepath.Join(r.temp, "summary"))
			check.True(t, strings.Contains(string(summary), c.summary) && (c.summary == "") == (len(summary) == 0), "got summary %q, want %q in it", summary, c.summary)
		})
	}

	t.Run("publish", func(t *testing.T) {
		if _, err := exec.LookPath("ssh"); err != nil {
			testkit.SkipUnsupported(t, "ssh is not installed")
		}
		r := newRunner(t, workflow, nil)
		failed, output := r.run("publish", map[string]string{"SERVER": "ssh://catalog@127.0.0.1:1", "KEY": "secret key", "KNOWN_HOSTS": ""})
		if failed != "Publish the catalog" || !strings.Contains(output, "port 1: Connection refused") || strings.Contains(output, "secret key") {
			t.Errorf("server that is down: got failed step %q and %s, want a refused connection", failed, output)
		}
		info, err := os.Stat(filepath.Join(r.temp, "key"))
		check.OK(t, err, info)
		check.Equal(t, info.Mode().Perm(), 0o600, info)
	})
}

// runner runs steps of a workflow as GitHub does.
type runner struct {
	*testing.T
	workflow  map[string]any
	env       map[string]string
	dir, temp string
}

func newRunner(t *testing.T, workflow map[string]any, env map[string]string) *runner {
	t.Helper()
	r := &runner{t, workflow, map[string]string{}, t.TempDir(), t.TempDir()}
	for name, value := range workflow["env"].(map[string]any) {
		r.env[name] = value.(string)
	}
	maps.Copy(r.env, env)
	maps.Copy(r.env, map[string]string{"RUNNER_TEMP": r.temp, "GITHUB_WORKSPACE": r.dir, "GITHUB_PATH": filepath.Join(r.temp, "path"), "GITHUB_STEP_SUMMARY": filepath.Join(r.temp, "summary")})
	return r
}

// run runs the commands of a job of a pull request, with these values for expressions in
// env. It returns the name of the step that failed, if any. Later steps run nevertheless
// if their condition says so.
func (r *runner) run(job string, expressions map[string]string) (failed, output string) {
	r.Helper()
	for _, step := range at(r.workflow, "jobs", job, "steps").([]any) {
		script, _ := at(step, "run").(string)
		condition, _ := at(step, "if").(string)
		if script == "" || failed != "" && !strings.Contains(condition, "!cancelled()") {
			continue
		}
		cmd := exec.Command(testkit.Bash.Ensure(r), "-e", blackbox.WriteFile(r, "step.sh", []byte(script)))
		cmd.Dir, cmd.Env = r.dir, testkit.CleanEnv()
		for name, value := range r.env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		for _, name := range keysOf(at(step, "env")) {
			value, given := expressions[name]
			if !given {
				r.Fatalf("step %v: got variable %s, want a value for it in the test", at(step, "name"), name)
			}
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		added, _ := os.ReadFile(r.env["GITHUB_PATH"])
		cmd.Env = append(cmd.Env, "PATH="+strings.Join(append(strings.Fields(string(added)), os.Getenv("PATH")), ":"))
		got := blackbox.Run(r, cmd)
		output += got.Out + got.Err
		if got.Code != 0 && failed == "" {
			failed = at(step, "name").(string)
		}
	}
	return failed, output
}
