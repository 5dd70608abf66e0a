package testkit

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"palmares/internal/dev/check"
)

// Cluster is a temporary PostgreSQL server on loopback.
type Cluster struct {
	URL        string
	bin, dir   string
	attributes *syscall.SysProcAttr
	process    *Process
	log        Log
}

// StartCluster creates and starts a server, with options such as "fsync=off". It
// is stopped when the test ends. PostgreSQL does not run as root, so root starts
// it as another user.
func StartCluster(t testing.TB, options ...string) *Cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "palmares-postgres-") // not t.TempDir, which other users may not enter
	check.OK(t, err)
	return newCluster(t, dir, FreeAddress(t), options)
}

// newCluster creates a server with its data in a new directory.
func newCluster(t testing.TB, dir, address string, options []string) *Cluster {
	t.Helper()
	c := &Cluster{bin: PostgreSQL.Ensure(t), dir: dir}
	t.Cleanup(func() { _ = os.RemoveAll(c.dir) })
	// In a process group of its own, Ctrl-C does not reach the server, which
	// tests still need while they end.
	c.attributes = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		uid, gid := ChownForPostgres(t, c.dir)
		c.attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	// A French collation exposes queries that leave the order to the database.
	err := c.command("initdb", "-D", c.data(), "-U", "palmares", "-A", "trust", "-E", "UTF8", "--no-sync",
		"--locale-provider=icu", "--icu-locale=fr", "--locale=C.UTF-8").Run()
	check.MustTrue(t, err == nil, "create a PostgreSQL cluster: %v\n%s", err, &c.log)
	host, port, _ := strings.Cut(address, ":")
	args := []string{"-D", c.data(), "-p", port,
		"-c", "listen_addresses=" + host, "-c", "unix_socket_directories=", "-c", "max_connections=600"}
	for _, option := range options {
		args = append(args, "-c", option)
	}
	c.URL = "postgres://palmares@" + address + "/postgres?sslmode=disable"
	c.run(t, args)
	return c
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir, cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = c.dir, c.attributes, &c.log, &c.log
	return cmd
}

// run starts the server and waits until it accepts connections. SIGINT is a fast
// shutdown, in PostgreSQL's terms.
func (c *Cluster) run(t testing.TB, args []string) {
	t.Helper()
	db := check.Try(sql.Open("postgres", c.URL)).OK(t)
	defer db.Close()
	c.process = start(t, c.command("postgres", args...), &c.log, syscall.SIGINT, func() string {
		if db.PingContext(t.Context()) != nil {
			return ""
		}
		return c.URL
	})
}

// Crash ends the server as a power failure would, leaving its data in place.
func (c *Cluster) Crash() { c.process.End(syscall.SIGQUIT) } // an immediate shutdown

// Restart starts a crashed server again, on the same data and port.
func (c *Cluster) Restart(t testing.TB) {
	t.Helper()
	c.run(t, c.process.Cmd.Args[1:])
}

// Freeze suspends all processes of the server, as if its machine hung.
func (c *Cluster) Freeze(t testing.TB) {
	t.Helper()
	c.signalAll(t, syscall.SIGSTOP)
}

// Thaw resumes a suspended server.
func (c *Cluster) Thaw(t testing.TB) {
	t.Helper()
	c.signalAll(t, syscall.SIGCONT)
}

// signalAll signals the parent first, so that it starts no further children.
func (c *Cluster) signalAll(t testing.TB, signal syscall.Signal) {
	t.Helper()
	parent := c.process.Cmd.Process
	check.OK(t, parent.Signal(signal))
	children := check.Try(os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", parent.Pid))).OK(t)
	for child := range strings.FieldsSeq(string(children)) {
		pid := check.Try(strconv.Atoi(child)).OK(t)
		_ = syscall.Kill(pid, signal) // it may have ended
	}
}

// ChownForPostgres gives a directory to the user that runs a Cluster.
func ChownForPostgres(t testing.TB, dir string) (uid, gid int) {
	t.Helper()
	account, err := user.Lookup("postgres")
	if err != nil {
		account, err = user.Lookup("nobody")
	}
	check.MustTrue(t, err == nil, "PostgreSQL does not run as root, and there is no user postgres or nobody to run it as")
	uid, uidErr := strconv.Atoi(account.Uid)
	gid, gidErr := strconv.Atoi(account.Gid)
	check.OK(t, errors.Join(uidErr, gidErr, os.Chown(dir, uid, gid)))
	return uid, gid
}
