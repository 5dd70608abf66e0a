package main

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
	"testing"
	"time"

	"palmares/internal/feed/synth"
	"palmares/internal/store"
	"palmares/internal/testdb"
)

// beMain makes the test binary behave as palmares itself, so that tests can
// start, kill and race real processes of it.
const beMain = "PALMARES_TEST_BE_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(beMain) != "" {
		main()
		return
	}
	code := m.Run()
	if shippedDir != "" {
		_ = os.RemoveAll(shippedDir)
	}
	os.Exit(code)
}

// shipped is palmares as it is shipped, for tests that run long: the embedded
// database is ten times as slow under the race detector.
func shipped(t testing.TB, cfg store.Config, args ...string) *exec.Cmd {
	t.Helper()
	path, err := buildShipped()
	if err != nil {
		t.Fatal(err)
	}
	cmd := palmares(t, cfg, args...)
	cmd.Path = path
	return cmd
}

var shippedDir string

var buildShipped = sync.OnceValues(func() (path string, err error) {
	if shippedDir, err = os.MkdirTemp("", "palmares-shipped-"); err != nil {
		return "", err
	}
	path = filepath.Join(shippedDir, "palmares")
	build := exec.Command("go", "build", "-trimpath", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// processLimit is far beyond what any of them takes.
const processLimit = 10 * time.Minute

// palmares prepares a process on a database.
func palmares(t testing.TB, cfg store.Config, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), processLimit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	inherited := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"DATABASE_URL", "PALMARES_DATA_DIR", "PALMARES_LISTEN", "SERVICE_NAME", "SERVICE_URL", "PUBLIC_URL", "TRUSTED_PROXIES", "REDIS_URL", "SMTP_URL", "MAIL_FROM"}, name) ||
			strings.HasPrefix(name, "STRIPE_") || strings.HasPrefix(name, "OTEL_")
	})
	// Without this, the race detector keeps each process a second at its end.
	cmd.Env = append(inherited, "GORACE=atexit_sleep_ms=0", beMain+"=1", "DATABASE_URL="+cfg.DatabaseURL, "PALMARES_DATA_DIR="+cfg.DataDir)
	cmd.Dir = t.TempDir()
	return cmd
}

// result is what a finished process left.
type result struct {
	code     int
	out, err string
}

// runs lets a process come to its end.
func runs(t testing.TB, cmd *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// succeeds is runs for a process that must exit with 0.
func succeeds(t testing.TB, cmd *exec.Cmd) result {
	t.Helper()
	r := runs(t, cmd)
	if r.code != 0 {
		t.Fatalf("%v: exit %d\n%s", cmd.Args[1:], r.code, r.err)
	}
	return r
}

// synthFile writes a synthetic feed to a file.
func synthFile(t testing.TB, opts synth.Options) string {
	t.Helper()
	var buf bytes.Buffer
	if err := synth.Write(t.Context(), &buf, opts); err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "feed.ndjson", buf.Bytes())
}

func writeFile(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// freeAddress is one that nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", testdb.FreePort(t))
}

func readAll(t testing.TB, r io.Reader) string {
	t.Helper()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
