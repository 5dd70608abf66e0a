package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Need is a program of the system that the tests cannot do without.
type Need struct {
	What     string
	find     func() string       // where it is, or ""
	packages map[string][]string // by package manager
}

// PostgreSQL is found in its server's folder, which is seldom in PATH.
var PostgreSQL = Need{
	What: "PostgreSQL",
	find: func() string {
		if path, err := exec.LookPath("initdb"); err == nil {
			if real, err := filepath.EvalSymlinks(path); err == nil {
				path = real // its folder has the other programs, too
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
	},
	packages: map[string][]string{
		"apt-get": {"postgresql"}, "dnf": {"postgresql-server"}, "apk": {"postgresql"}, "brew": {"postgresql"},
	},
}

// CCompiler is what the race detector is built with.
var CCompiler = Need{
	What: "a C compiler",
	find: func() string {
		for _, name := range []string{os.Getenv("CC"), "gcc", "cc", "clang"} {
			if path, err := exec.LookPath(name); name != "" && err == nil {
				return path
			}
		}
		return ""
	},
	packages: map[string][]string{
		"apt-get": {"gcc", "libc6-dev"}, "dnf": {"gcc"}, "apk": {"gcc", "musl-dev"}, "brew": {"gcc"},
	},
}

// Node runs what only exists as an npm package: other people's proofs.
var Node = Need{
	What: "Node.js with npm",
	find: func() string {
		node, err := exec.LookPath("node")
		if _, missing := exec.LookPath("npm"); err != nil || missing != nil {
			return ""
		}
		return node
	},
	packages: map[string][]string{
		"apt-get": {"nodejs", "npm"}, "dnf": {"nodejs", "npm"}, "apk": {"nodejs", "npm"}, "brew": {"node"},
	},
}

// Redis and Nginx are what several servers have beside and before them.
var (
	Redis = program("Redis", "redis-server", map[string][]string{"apt-get": {"redis-server"}, "dnf": {"redis"}, "apk": {"redis"}, "brew": {"redis"}})
	Nginx = program("nginx", "nginx", map[string][]string{"apt-get": {"nginx-light"}, "dnf": {"nginx"}, "apk": {"nginx"}, "brew": {"nginx"}})
)

// Curl, Bash and Python run the snippets of the guides, beside Node.
var (
	Curl   = program("curl", "curl", map[string][]string{"apt-get": {"curl"}, "dnf": {"curl"}, "apk": {"curl"}, "brew": {"curl"}})
	Bash   = program("bash", "bash", map[string][]string{"apt-get": {"bash"}, "dnf": {"bash"}, "apk": {"bash"}, "brew": {"bash"}})
	Python = program("Python 3", "python3", map[string][]string{"apt-get": {"python3"}, "dnf": {"python3"}, "apk": {"python3"}, "brew": {"python"}})
)

// Chromium shows the pages to the tests as it would to a visitor.
var Chromium = Need{
	What: "Chromium",
	find: func() string {
		for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
			if path, err := exec.LookPath(name); err == nil {
				return path
			}
		}
		return ""
	},
	packages: map[string][]string{
		"apt-get": {"chromium"}, "dnf": {"chromium"}, "apk": {"chromium"}, "brew": {"chromium"},
	},
}

// Needs are all but PostgreSQL, for who sees to them before the tests do.
var Needs = []Need{CCompiler, Node, Redis, Nginx, Chromium, Curl, Bash, Python}

// program is a need that is found in PATH, or where servers are.
func program(what, name string, packages map[string][]string) Need {
	return Need{What: what, packages: packages, find: func() string {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
		if _, err := os.Stat("/usr/sbin/" + name); err == nil {
			return "/usr/sbin/" + name
		}
		return ""
	}}
}

// Ensure returns where the program is, after installing it if it must and
// can; else its error is the one line that says what to install.
func (n Need) Ensure() (string, error) {
	if path := n.find(); path != "" {
		return path, nil
	}
	manager := packageManager()
	if manager == "" {
		return "", fmt.Errorf("the tests need %s: install it with your system's package manager", n.What)
	}
	install := append([]string{manager, "install", "-y"}, n.packages[manager]...)
	switch manager {
	case "apk":
		install = append([]string{"apk", "add"}, n.packages[manager]...)
	case "brew":
		install = append([]string{"brew", "install"}, n.packages[manager]...)
	}
	advice := fmt.Errorf("the tests need %s: run %s", n.What, strings.Join(install, " "))
	if os.Geteuid() != 0 && manager != "brew" {
		return "", advice
	}
	fmt.Fprintf(os.Stderr, "installing %s: %s\n", n.What, strings.Join(install, " "))
	if manager == "apt-get" {
		_ = run("apt-get", "update", "-q") // an old list may still do; the install tells
	}
	if err := run(install...); err != nil {
		return "", advice
	}
	if path := n.find(); path != "" {
		return path, nil
	}
	return "", advice
}

func packageManager() string {
	for _, name := range []string{"apt-get", "dnf", "apk", "brew"} {
		if _, err := exec.LookPath(name); err == nil {
			return name
		}
	}
	return ""
}

func run(command ...string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}
