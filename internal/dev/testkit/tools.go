package testkit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/repo"
)

// Need is a program that the tests require.
type Need struct {
	name     string
	find     func() string // returns its path, or ""
	packages string        // of Debian
}

// The programs that tests and development tools require. PostgreSQL's path is
// the directory of its server programs, and CCompiler is for the race detector.
var (
	PostgreSQL  = Need{"PostgreSQL", findPostgreSQL, "postgresql"}
	CCompiler   = Need{"a C compiler", firstInPath(os.Getenv("CC"), "gcc", "cc", "clang"), "gcc libc6-dev"}
	Node        = Need{"Node.js with npm", findNode, "nodejs npm"}
	Redis       = Need{"Redis", firstInPath("redis-server"), "redis-server"}
	Nginx       = Need{"nginx", firstInPath("nginx"), "nginx-light"}
	Varnish     = Need{"Varnish with xkey", findVarnish, "varnish varnish-modules"}
	Chromium    = Need{"Chromium", firstInPath("chromium", "chromium-browser", "google-chrome"), "chromium"}
	Curl        = Need{"curl", firstInPath("curl"), "curl"}
	Bash        = Need{"bash", firstInPath("bash"), "bash"}
	Git         = Need{"git", firstInPath("git"), "git"}
	LibreOffice = Need{"LibreOffice Calc", firstInPath("soffice", "libreoffice"), "libreoffice-calc"}
	Python      = Need{"Python 3", firstInPath("python3"), "python3"}
	Pandas      = Need{"pandas", findPandas, "python3-pandas"} // its path is that of Python
)

// Needs are all programs but PostgreSQL.
var Needs = []Need{CCompiler, Node, Redis, Nginx, Varnish, Chromium, Curl, Bash, Git, Python, Pandas, LibreOffice}

// firstInPath looks in PATH, and in /usr/sbin, where servers are.
func firstInPath(names ...string) func() string {
	return func() string {
		for _, name := range names {
			for _, path := range []string{name, "/usr/sbin/" + name} {
				if found, err := exec.LookPath(path); name != "" && err == nil {
					return found
				}
			}
		}
		return ""
	}
}

func findNode() string {
	if firstInPath("npm")() == "" {
		return ""
	}
	return firstInPath("node")()
}

// findPandas returns a Python with pandas: there may be another one first in PATH.
func findPandas() string {
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import pandas").Run() == nil {
			return python
		}
	}
	return ""
}

// findVarnish returns the server, if it has the module.
func findVarnish() string {
	for _, folder := range []string{"/usr/lib", "/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/local/lib", "/opt/homebrew/lib"} {
		if found, _ := filepath.Glob(folder + "/varnish/vmods/libvmod_xkey.so"); found != nil {
			return firstInPath("varnishd")()
		}
	}
	return ""
}

func findPostgreSQL() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real // the directory of the other programs
		}
		return filepath.Dir(path)
	}
	newest := ""
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/usr/libexec/postgresql*",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
	} {
		matches, _ := filepath.Glob(pattern + "/initdb")
		for _, match := range matches {
			newest = max(newest, filepath.Dir(match))
		}
	}
	return newest
}

// TierVariable is the environment variable with the tier of tests that runs: "full" in
// make test-full, where tests may use other programs than PostgreSQL.
const TierVariable = "TEST_TIER"

// FullTier skips a test that belongs to make test-full.
func FullTier(t testing.TB, why string) {
	t.Helper()
	if testing.Testing() && os.Getenv(TierVariable) != "full" {
		t.Skipf("%s: make test-full runs this test", why)
	}
}

// Rounds returns how often a test repeats what depends on chance: a few times, and more
// often in make test-full.
func Rounds(few, more int) int {
	if os.Getenv(TierVariable) == "full" {
		return more
	}
	return few
}

// SeedVariable is the environment variable with the seed of tests that choose at random.
const SeedVariable = "SEED"

// GivenSeed returns the seed of the environment, if there is one.
func GivenSeed(t testing.TB) (seed uint64, ok bool) {
	t.Helper()
	text := os.Getenv(SeedVariable)
	if text == "" {
		return 0, false
	}
	seed = check.Try(strconv.ParseUint(text, 10, 64)).OK(t, SeedVariable+" must be a number")
	return seed, true
}

// Seed returns the seed of the environment, or another one in each run, and logs it, so
// that a failure can be replayed.
func Seed(t testing.TB) uint64 {
	t.Helper()
	return SeedOr(t, rand.Uint64())
}

// SeedOr returns the seed of the environment, or the usual one, and logs it.
func SeedOr(t testing.TB, usual uint64) uint64 {
	t.Helper()
	seed, ok := GivenSeed(t)
	if !ok {
		seed = usual
	}
	t.Logf("%s=%d", SeedVariable, seed)
	return seed
}

// Ensure returns the path of the program. A test of the first tier is skipped if it
// needs another program than PostgreSQL, or if PostgreSQL is missing. In the second
// tier and in development tools, Ensure installs what is missing.
func (n Need) Ensure(t testing.TB) string {
	t.Helper()
	if n.name != PostgreSQL.name {
		FullTier(t, "it needs "+n.name)
	}
	if n.find() == "" {
		FullTier(t, n.name+" is not installed")
		check.OK(t, n.Install())
	}
	return n.find()
}

// Install installs the program if it is missing and the user may, or returns an error
// that says how to.
func (n Need) Install() error {
	if n.find() != "" {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err == nil && os.Geteuid() == 0 {
		fmt.Fprintf(os.Stderr, "installing %s: %s\n", n.name, n.packages)
		_ = run("apt-get update -q") // an old list may be sufficient
		if run("apt-get install -y "+n.packages) == nil && n.find() != "" {
			return nil
		}
	}
	return fmt.Errorf("the tests need %s: install it, for example with apt-get install %s", n.name, n.packages)
}

func run(command string) error {
	words := strings.Fields(command)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// NPM installs the packages of the lock file in dir, unless they are installed.
// The other files in dir become inputs of Go's test cache.
func NPM(t testing.TB, dir string) {
	t.Helper()
	Node.Ensure(t)
	absolute, err := filepath.Abs(dir)
	check.OK(t, err)
	folder, err := filepath.Rel(repo.Root(t), absolute)
	check.OK(t, err)
	repo.Read(t, folder)
	lock := lockPackages(t, dir)
	defer lock.Close()
	wanted, err := lock.Stat()
	check.OK(t, err)
	installed, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json")) // written last
	if err != nil || installed.ModTime().Before(wanted.ModTime()) {
		build(t, dir, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	}
}

// Assets builds the explorer and the API reference like `make assets`, and
// returns their directory. A test binary contains them only if they were there
// when it was compiled.
func Assets(t testing.TB) string {
	t.Helper()
	Node.Ensure(t)
	dir := filepath.Join(repo.Root(t), "internal", "web", "apidocs")
	defer lockPackages(t, filepath.Join(dir, "web")).Close()
	build(t, repo.Root(t), "make", "assets")
	return filepath.Join(dir, "built")
}

// lockPackages locks the npm packages of a directory until the file is closed:
// tests of several packages may install the same ones at once.
func lockPackages(t testing.TB, dir string) *os.File {
	t.Helper()
	file := check.Try(os.Open(filepath.Join(dir, "package-lock.json"))).OK(t)
	check.OK(t, Lock(file))
	return file
}

func build(t testing.TB, dir, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	check.MustTrue(t, err == nil, "%s in %s: %v\n%s", name, dir, err, out)
}

// CleanEnv returns the environment without variables that configure palmares.
func CleanEnv() []string {
	settings := []string{"DATABASE_URL", "PUBLIC_URL", "TRUSTED_PROXIES", "REDIS_URL", "SMTP_URL", "MAIL_FROM"}
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(settings, name) || strings.HasPrefix(name, "PALMARES_") || strings.HasPrefix(name, "SERVICE_") ||
			strings.HasPrefix(name, "STRIPE_") || strings.HasPrefix(name, "OTEL_")
	})
}

// notesVariable is the environment variable with the file to which skipped tests
// write their reasons. The Makefile prints it at the end, so that no test is skipped
// silently.
const notesVariable = "TEST_NOTES"

// SkipUnsupported skips a test that this machine does not support.
func SkipUnsupported(t testing.TB, why string) {
	t.Helper()
	if file, err := os.OpenFile(os.Getenv(notesVariable), os.O_APPEND|os.O_WRONLY, 0); err == nil {
		fmt.Fprintf(file, "not run: %s: %s\n", t.Name(), why)
		_ = file.Close()
	}
	t.Skip(why)
}

// SmallDisk mounts a file system of a limited size for the duration of a test.
func SmallDisk(t testing.TB, size int) string {
	t.Helper()
	dir, err := MountSmallDisk(t, size)
	if err != nil {
		SkipUnsupported(t, "mounting a small disk requires root on Linux")
	}
	return dir
}

// MountSmallDisk is like SmallDisk, but returns an error if it cannot.
func MountSmallDisk(t testing.TB, size int) (dir string, err error) {
	// Not in a test's own directory, which other users, such as that of a
	// database server, may not enter.
	if dir, err = os.MkdirTemp("", "palmares-disk-"); err != nil {
		return "", err
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	if err := run(fmt.Sprintf("mount -t tmpfs -o size=%d,mode=0700 tmpfs %s", size, dir)); err != nil {
		return "", err
	}
	t.Cleanup(func() { _ = run("umount " + dir) })
	return dir, nil
}
