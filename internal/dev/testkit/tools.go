package testkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// managers are the package managers that can install programs.
var managers = [4]struct{ name, install string }{{"apt-get", "install -y"}, {"dnf", "install -y"}, {"apk", "add"}, {"brew", "install"}}

// Need is a program that the tests require.
type Need struct {
	name     string
	find     func() string // returns its path, or ""
	packages [4]string     // by package manager
}

// The programs that tests and development tools require. PostgreSQL's path is
// the directory of its server programs, and CCompiler is for the race detector.
var (
	PostgreSQL = Need{"PostgreSQL", findPostgreSQL, [4]string{"postgresql", "postgresql-server", "postgresql", "postgresql"}}
	CCompiler  = Need{"a C compiler", firstInPath(os.Getenv("CC"), "gcc", "cc", "clang"), [4]string{"gcc libc6-dev", "gcc", "gcc musl-dev", "gcc"}}
	Node       = Need{"Node.js with npm", findNode, [4]string{"nodejs npm", "nodejs npm", "nodejs npm", "node"}}
	Redis      = Need{"Redis", firstInPath("redis-server"), [4]string{"redis-server", "redis", "redis", "redis"}}
	Nginx      = Need{"nginx", firstInPath("nginx"), [4]string{"nginx-light", "nginx", "nginx", "nginx"}}
	Chromium   = Need{"Chromium", firstInPath("chromium", "chromium-browser", "google-chrome"), [4]string{"chromium", "chromium", "chromium", "chromium"}}
	Curl       = Need{"curl", firstInPath("curl"), [4]string{"curl", "curl", "curl", "curl"}}
	Bash       = Need{"bash", firstInPath("bash"), [4]string{"bash", "bash", "bash", "bash"}}
	Python     = Need{"Python 3", firstInPath("python3"), [4]string{"python3", "python3", "python3", "python"}}
)

// Needs are all programs but PostgreSQL.
var Needs = []Need{CCompiler, Node, Redis, Nginx, Chromium, Curl, Bash, Python}

// firstInPath looks in PATH, and in /usr/sbin, where servers are.
func firstInPath(names ...string) func() string {
	return func() string {
		for _, name := range names {
			if path, err := exec.LookPath(name); name != "" && err == nil {
				return path
			}
			if _, err := os.Stat("/usr/sbin/" + name); name != "" && err == nil {
				return "/usr/sbin/" + name
			}
		}
		return ""
	}
}

func findNode() string {
	node, err := exec.LookPath("node")
	if _, npmErr := exec.LookPath("npm"); err != nil || npmErr != nil {
		return ""
	}
	return node
}

func findPostgreSQL() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real // the directory of the other programs
		}
		return filepath.Dir(path)
	}
	var found []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin/initdb",
		"/usr/pgsql-*/bin/initdb",
		"/usr/libexec/postgresql*/initdb",
		"/opt/homebrew/opt/postgresql*/bin/initdb",
		"/usr/local/opt/postgresql*/bin/initdb",
	} {
		matches, _ := filepath.Glob(pattern)
		found = append(found, matches...)
	}
	if len(found) == 0 {
		return ""
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1])
}

// Ensure returns the path of the program. If it is missing, Ensure installs it
// or returns an error that says how to.
func (n Need) Ensure() (string, error) {
	if path := n.find(); path != "" {
		return path, nil
	}
	for i, manager := range managers {
		if _, err := exec.LookPath(manager.name); err != nil {
			continue
		}
		command := manager.name + " " + manager.install + " " + n.packages[i]
		if os.Geteuid() == 0 || manager.name == "brew" {
			fmt.Fprintf(os.Stderr, "installing %s: %s\n", n.name, command)
			if manager.name == "apt-get" {
				_ = run("apt-get update -q") // an old list may do
			}
			if err := run(command); err == nil && n.find() != "" {
				return n.find(), nil
			}
		}
		return "", fmt.Errorf("the tests need %s: run %s", n.name, command)
	}
	return "", fmt.Errorf("the tests need %s: install it with your system's package manager", n.name)
}

func run(command string) error {
	words := strings.Fields(command)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// NPM installs the packages of the lock file in dir, unless they are there.
func NPM(t testing.TB, dir string) {
	t.Helper()
	lock := lockFile(t, filepath.Join(dir, "package-lock.json"))
	defer lock.Close()
	installed, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json")) // written last
	if err == nil {
		if wanted, err := lock.Stat(); err == nil && !installed.ModTime().Before(wanted.ModTime()) {
			return
		}
	}
	build(t, dir, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
}

// Assets builds the explorer and the API reference like `make assets`, and
// returns their directory. A test binary contains them only if they were there
// when it was compiled.
func Assets(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(Root(t), "internal", "web", "workbench")
	defer lockFile(t, filepath.Join(dir, "web", "package-lock.json")).Close()
	build(t, Root(t), "make", "assets")
	return filepath.Join(dir, "built")
}

// lockFile locks a file until it is closed: tests of several packages may
// install the same npm packages at once.
func lockFile(t testing.TB, name string) *os.File {
	t.Helper()
	if _, err := Node.Ensure(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err == nil {
			return file
		}
		if !errors.Is(err, syscall.EINTR) {
			t.Fatal(err)
		}
	}
}

func build(t testing.TB, dir, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s in %s: %v\n%s", name, dir, err, out)
	}
}

// Root returns the root of the repository.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := FindRoot()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// FindRoot is Root for programs that are not tests.
func FindRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod in this directory or above")
		}
		dir = parent
	}
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

// Files are the files of a directory, by name.
type Files map[string][]byte

// ReadFiles reads the files in a directory.
func ReadFiles(dir string) (Files, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := Files{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// WriteTo writes the files into a directory.
func (f Files) WriteTo(dir string) error {
	for name, data := range f {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// notesVariable is the environment variable with the file in which skipped
// tests say why. Withpostgres prints it at the end, so that no test is skipped
// silently.
const notesVariable = "TEST_NOTES"

// SkipUnsupported skips a test that this machine does not support.
func SkipUnsupported(t testing.TB, why string) {
	t.Helper()
	file, err := os.OpenFile(os.Getenv(notesVariable), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatalf("not supported here: %s", why) // a skip would go unnoticed
	}
	defer file.Close()
	fmt.Fprintf(file, "not run: %s: %s\n", t.Name(), why)
	t.Skip(why)
}

// CollectNotes creates the file for notes; print shows what was written to it.
func CollectNotes() (print func(), err error) {
	file, err := os.CreateTemp("", "palmares-notes-")
	if err != nil {
		return nil, err
	}
	_ = file.Close()
	return func() {
		notes, _ := os.ReadFile(file.Name())
		_, _ = os.Stderr.Write(notes)
		_ = os.Remove(file.Name())
	}, os.Setenv(notesVariable, file.Name())
}

// SmallDisk mounts a file system of a limited size for the length of a test.
func SmallDisk(t testing.TB, size int) string {
	t.Helper()
	dir, unmount, err := MountSmallDisk(size)
	if err != nil {
		SkipUnsupported(t, "mounting a small disk requires root on Linux")
	}
	t.Cleanup(unmount)
	return dir
}

// ChownForPostgres gives a directory to the user that runs a Cluster.
func ChownForPostgres(t testing.TB, dir string) {
	t.Helper()
	uid, gid, err := unprivilegedUser()
	if err == nil {
		err = os.Chown(dir, uid, gid)
	}
	if err != nil {
		t.Fatal(err)
	}
}
