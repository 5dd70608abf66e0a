// Package blackbox builds palmares and runs it as a process, for tests that
// treat it as its operators and clients do. Only tests import it.
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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// Limit is far beyond what any process takes.
const Limit = 30 * time.Minute

// instead is a program that is run instead of one that is built, with what it
// needs in its environment.
var instead struct {
	path string
	env  []string
}

// RunInstead makes commands run another program than one that is built here,
// such as a test binary that behaves as palmares.
func RunInstead(path string, env ...string) { instead.path, instead.env = path, env }

// RunShipped makes all commands run palmares as it is shipped, for tests of what
// a browser shows: beside one, a server under the race detector takes most of
// the machine.
func RunShipped() { buildAsTests = buildShipped }

// Path is where the palmares is that commands run. It has the race detector if
// the tests do.
func Path(t testing.TB) string {
	t.Helper()
	if instead.path != "" {
		return instead.path
	}
	return built(t, buildAsTests)
}

// Command prepares a process of palmares on a database.
func Command(t testing.TB, cfg store.Config, args ...string) *exec.Cmd {
	t.Helper()
	return command(t, Path(t), cfg, args...)
}

// Shipped prepares a process of palmares as it is shipped, for tests that run
// long: the embedded database is ten times as slow under the race detector.
func Shipped(t testing.TB, cfg store.Config, args ...string) *exec.Cmd {
	t.Helper()
	return command(t, built(t, buildShipped), cfg, args...)
}

func command(t testing.TB, path string, cfg store.Config, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	inherited := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"DATABASE_URL", "PALMARES_DATA_DIR", "PALMARES_LISTEN", "SERVICE_NAME", "SERVICE_URL", "PUBLIC_URL", "TRUSTED_PROXIES", "REDIS_URL", "SMTP_URL", "MAIL_FROM"}, name) ||
			strings.HasPrefix(name, "STRIPE_") || strings.HasPrefix(name, "OTEL_")
	})
	// Without this, the race detector keeps each process a second at its end.
	cmd.Env = append(inherited, "GORACE=atexit_sleep_ms=0", "DATABASE_URL="+cfg.DatabaseURL, "PALMARES_DATA_DIR="+cfg.DataDir)
	if path == instead.path {
		cmd.Env = append(cmd.Env, instead.env...)
	}
	cmd.Dir = t.TempDir()
	return cmd
}

// built is where a build has left the program.
func built(t testing.TB, build func() (string, error)) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var (
	// With the flags of make build, so that nothing is compiled twice.
	buildShipped = sync.OnceValues(func() (string, error) {
		return build("palmares", "0", "-trimpath", "-buildvcs=false")
	})
	buildAsTests = sync.OnceValues(func() (string, error) {
		if !underRace {
			return buildShipped()
		}
		flags := []string{"-race"} // and the rest of the flags of make test, for the same reason
		for _, pkg := range strings.Fields(os.Getenv("TEST_UNWATCHED")) {
			flags = append(flags, "-gcflags="+pkg+"=-race=false -d=checkptr=0")
		}
		return build("palmares-race", "1", flags...)
	})
)

// build leaves a program below the repository's bin. Each package's tests build
// it, but only the first has something to do.
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
	defer lock.Close() // and let go of it
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

// Result is what a finished process left.
type Result struct {
	Code     int
	Out, Err string
}

// Runs lets a process come to its end.
func Runs(t testing.TB, cmd *exec.Cmd) Result {
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

// Succeeds is Runs for a process that must exit with 0.
func Succeeds(t testing.TB, cmd *exec.Cmd) Result {
	t.Helper()
	r := Runs(t, cmd)
	if r.Code != 0 {
		t.Fatalf("%v: exit %d\n%s", cmd.Args[1:], r.Code, r.Err)
	}
	return r
}

// NewKey opens an account and makes a key, as an operator does.
func NewKey(t testing.TB, cfg store.Config, plan string) string {
	t.Helper()
	email := fmt.Sprintf("%s-%d@example.com", plan, accounts.Add(1))
	Succeeds(t, Command(t, cfg, "accounts", "create", email, "--plan", plan))
	return strings.TrimSpace(Succeeds(t, Command(t, cfg, "keys", "create", email, "--name", "test")).Out)
}

var accounts atomic.Int64

// SynthFile writes a synthetic feed to a file.
func SynthFile(t testing.TB, opts synth.Options) string {
	t.Helper()
	var buf bytes.Buffer
	if err := synth.Write(t.Context(), &buf, opts); err != nil {
		t.Fatal(err)
	}
	return WriteFile(t, "feed.ndjson", buf.Bytes())
}

// WriteFile writes a file that goes with the test.
func WriteFile(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ReadAll is all that can be read, as text.
func ReadAll(t testing.TB, r io.Reader) string {
	t.Helper()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// FreeAddress is one that nobody listens on.
func FreeAddress(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
}
