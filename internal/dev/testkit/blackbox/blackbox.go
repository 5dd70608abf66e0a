// Package blackbox builds palmares and runs it as a process, for tests that use
// it like its operators and clients do.
package blackbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	catalog "palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// Limit is much longer than any process runs.
const Limit = 30 * time.Minute

// instead is the program set by RunInstead.
var instead struct {
	path string
	env  []string
}

// UseProgram makes commands run another program with additional environment
// variables, such as a test binary that behaves like palmares.
func UseProgram(path string, env ...string) { instead.path, instead.env = path, env }

// UseReleaseBuild makes all commands run the release build. Browser tests use it: a
// server with the race detector would take most of the CPU from the browser.
func UseReleaseBuild() { buildAsTests = buildShipped }

// Path returns the path of the program that commands run. It is built with the
// race detector if the tests are.
func Path(t testing.TB) string {
	t.Helper()
	if instead.path != "" {
		return instead.path
	}
	return built(t, buildAsTests)
}

// Command prepares a palmares process on a database.
func Command(t testing.TB, cfg store.Config, args ...string) *exec.Cmd {
	t.Helper()
	return command(t, Path(t), cfg, args...)
}

// ReleaseCommand is like Command with the release build, for long tests: the embedded
// database is ten times slower under the race detector.
func ReleaseCommand(t testing.TB, cfg store.Config, args ...string) *exec.Cmd {
	t.Helper()
	return command(t, built(t, buildShipped), cfg, args...)
}

func command(t testing.TB, path string, cfg store.Config, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	// By default, the race detector delays the exit by a second.
	cmd.Env = append(testkit.CleanEnv(), "GORACE=atexit_sleep_ms=0", "DATABASE_URL="+cfg.DatabaseURL, "PALMARES_DATA_DIR="+cfg.DataDir)
	if path == instead.path {
		cmd.Env = append(cmd.Env, instead.env...)
	}
	cmd.Dir = t.TempDir()
	return cmd
}

func built(t testing.TB, build func() (string, error)) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// The flags are those of make build and make test, so that the build cache
// already has the packages.
var (
	buildShipped = sync.OnceValues(func() (string, error) {
		return build("palmares", "0", "-trimpath", "-buildvcs=false")
	})
	buildAsTests = sync.OnceValues(func() (string, error) {
		if !underRace {
			return buildShipped()
		}
		flags := []string{"-race"}
		for _, pkg := range strings.Fields(os.Getenv("TEST_UNWATCHED")) {
			flags = append(flags, "-gcflags="+pkg+"=-race=false -d=checkptr=0")
		}
		return build("palmares-race", "1", flags...)
	})
)

// build builds palmares into bin/test. Tests of several packages do so at once,
// so it holds a lock.
func build(name, cgo string, flags ...string) (string, error) {
	root, err := testkit.FindRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "bin", "test")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := os.Create(filepath.Join(dir, name+".lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	cmd := exec.Command("go", append(append([]string{"build"}, flags...), "-o", path, "./cmd/palmares")...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
}

// Result is the exit code and output of a process.
type Result struct {
	Code     int
	Out, Err string
}

// Run runs a process to its end.
func Run(t testing.TB, cmd *exec.Cmd) Result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return Result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// MustRun runs a process that must exit with 0.
func MustRun(t testing.TB, cmd *exec.Cmd) Result {
	t.Helper()
	r := Run(t, cmd)
	if r.Code != 0 {
		t.Fatalf("%v: got exit code %d, want 0\n%s", cmd.Args[1:], r.Code, r.Err)
	}
	return r
}

var accounts atomic.Int64

// NewKey creates an account and an API key on the command line.
func NewKey(t testing.TB, cfg store.Config, plan string) string {
	t.Helper()
	email := fmt.Sprintf("%s-%d@example.com", plan, accounts.Add(1))
	MustRun(t, Command(t, cfg, "accounts", "create", email, "--plan", plan))
	return strings.TrimSpace(MustRun(t, Command(t, cfg, "keys", "create", email, "--name", "test")).Out)
}

// demo returns the files of an embedded database with the demo catalog.
var demo = sync.OnceValues(func() (testkit.Files, error) {
	dir, err := os.MkdirTemp("", "palmares-demo-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path, err := buildShipped()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "import", "-")
	cmd.Dir, cmd.Env, cmd.Stdin = dir, append(testkit.CleanEnv(), "PALMARES_DATA_DIR="+dir), bytes.NewReader(catalog.Catalog)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("import the demo catalog: %w\n%s", err, out)
	}
	return testkit.ReadFiles(dir)
})

// Demo returns a new embedded database with the demo catalog. The import runs
// once, without the race detector; each test gets a copy.
func Demo(t testing.TB) store.Config {
	t.Helper()
	cfg := store.Config{DataDir: t.TempDir()}
	files, err := demo()
	if err == nil {
		err = files.WriteTo(cfg.DataDir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// SynthFile writes a synthetic feed to a file.
func SynthFile(t testing.TB, opts synth.Options) string {
	t.Helper()
	var buf bytes.Buffer
	if err := synth.Write(t.Context(), &buf, opts); err != nil {
		t.Fatal(err)
	}
	return WriteFile(t, "feed.ndjson", buf.Bytes())
}

// WriteFile writes a file that is removed with the test.
func WriteFile(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ReadAll reads everything as text.
func ReadAll(t testing.TB, r io.Reader) string {
	t.Helper()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// FreeAddress returns a loopback address on which nothing listens.
func FreeAddress(t testing.TB) string {
	t.Helper()
	address, err := testkit.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// NewProxy starts a proxy in front of a database, which ends with the test.
func NewProxy(t testing.TB, database string) *testkit.Proxy {
	t.Helper()
	line, err := testkit.OpenProxy(database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(line.Close)
	return line
}
