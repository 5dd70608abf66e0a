package testkit

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// stripeMockVersion is the one that stripemock/go.mod asks for.
const stripeMockVersion = "v0.203.0"

// StartStripeMock starts Stripe's own mock of its API, for the length of a
// test, and returns its address.
func StartStripeMock(t testing.TB) string {
	t.Helper()
	path, err := stripeMock()
	if err != nil {
		t.Fatal(err)
	}
	// It says which ports it took: one that we looked for could be another's by
	// the time it listens. Left to itself it takes a fixed one for TLS, and dies
	// where another has it.
	cmd := exec.Command(path, "-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0")
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if address, found := strings.CutPrefix(lines.Text(), "Listening for HTTP at address: "); found {
			go func() { _, _ = io.Copy(io.Discard, said) }() // it must not wait for a reader
			return "http://" + address
		}
	}
	t.Fatal("stripe-mock ended before it listened")
	return ""
}

// stripeMock is where the program is. It is built once on a machine, from a
// module of its own: the service needs nothing of what it needs.
var stripeMock = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "palmares-tests")
	path := filepath.Join(dir, "stripe-mock-"+stripeMockVersion)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	// Other tests may build it at the same time: each does so apart, and the
	// last one's stays.
	building, err := os.MkdirTemp(dir, "building-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(building)
	built := filepath.Join(building, "stripe-mock")
	cmd := exec.Command("go", "build", "-C", stripeMockModule(), "-o", built, "github.com/stripe/stripe-mock")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build stripe-mock: %w\n%s", err, output)
	}
	return path, os.Rename(built, path)
})

func stripeMockModule() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "stripemock")
}
