package process_test

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"palmares/internal/catalog/feed/demo"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

var update = flag.Bool("update", false, "write the expected files of scripts")

// TestScripts runs script/*.txtar: the command line as operators see it. A script has its
// own empty database, and starts in a folder with its files, with the demo catalog as
// demo.ndjson and in the folder catalog. One that begins with "# on both databases" also
// runs on PostgreSQL. Beside the commands of testscript there are:
//
//	palmares ARGS…        runs palmares, which must succeed
//	fails CODE ARGS…      runs palmares, which must end with an exit code
//	piped FILE ARGS…      runs palmares with a file as its input, through a pipe
//	publish-editions      imports the editions of the demo catalog
//	empty                 uses another empty database of the same kind from here on
//	receiver              starts a receiver of webhooks, and sets RECEIVER to its URL
func TestScripts(t *testing.T) {
	t.Parallel()
	scripts := check.Try(filepath.Glob("script/*.txtar")).OK(t)
	for _, script := range scripts {
		text := check.Try(os.ReadFile(script)).OK(t)
		t.Run(filepath.Base(script), func(t *testing.T) {
			run := runScript(script, func(t *testing.T) store.Config { return testkit.SQLite(t) })
			if !strings.HasPrefix(string(text), "# on both databases\n") {
				run(t)
				return
			}
			t.Run("sqlite", run)
			t.Run("postgres", runScript(script, func(t *testing.T) store.Config { return testkit.Postgres(t) }))
		})
	}
}

func runScript(script string, database func(t *testing.T) store.Config) func(t *testing.T) {
	return func(t *testing.T) {
		program := blackbox.Path(t)
		use := func(cfg store.Config, setenv func(key, value string)) {
			setenv("DATABASE_URL", cfg.DatabaseURL)
			setenv("PALMARES_DATA_DIR", cfg.DataDir)
		}
		testscript.Run(t, testscript.Params{
			Files: []string{script}, UpdateScripts: *update, RequireUniqueNames: true,
			Setup: func(env *testscript.Env) error {
				use(database(t), env.Setenv)
				env.Setenv("PATH", filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
				return errors.Join(
					os.WriteFile(filepath.Join(env.WorkDir, "demo.ndjson"), demo.Catalog(), 0o600),
					os.CopyFS(filepath.Join(env.WorkDir, "catalog"), os.DirFS("../../internal/catalog/feed/demo/catalog")),
				)
			},
			Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
				"palmares": func(ts *testscript.TestScript, _ bool, args []string) { ts.Check(ts.Exec("palmares", args...)) },
				"fails": func(ts *testscript.TestScript, _ bool, args []string) {
					code, err := strconv.Atoi(args[0])
					ts.Check(err)
					var exit *exec.ExitError
					if err := ts.Exec("palmares", args[1:]...); !errors.As(err, &exit) || exit.ExitCode() != code {
						ts.Fatalf("got %v, want exit code %d", err, code)
					}
				},
				"piped": func(ts *testscript.TestScript, _ bool, args []string) {
					ts.Check(ts.Exec("sh", append([]string{"-c", `file=$1; shift; cat "$file" | palmares "$@"`, "sh"}, args...)...))
				},
				"publish-editions": func(ts *testscript.TestScript, _ bool, _ []string) {
					editions, err := demo.Editions()
					ts.Check(err)
					for _, edition := range editions {
						ts.Check(os.WriteFile(ts.MkAbs("edition"), edition.Feed, 0o600))
						ts.Check(ts.Exec("palmares", "import", "edition"))
					}
				},
				"empty":    func(ts *testscript.TestScript, _ bool, _ []string) { use(database(t), ts.Setenv) },
				"receiver": func(ts *testscript.TestScript, _ bool, _ []string) { ts.Setenv("RECEIVER", newInbox(t).URL) },
			},
		})
	}
}
