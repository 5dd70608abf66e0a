package testkit

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"palmares/internal/dev/testkit/wait"
)

// Cluster is a temporary PostgreSQL server on loopback.
type Cluster struct {
	URL        string
	bin, dir   string
	attributes *syscall.SysProcAttr
	server     *exec.Cmd
	log        bytes.Buffer
}

// StartCluster creates and starts a server from the binaries in bin, with
// options such as "fsync=off". PostgreSQL does not run as root, so root starts
// it as another user.
func StartCluster(ctx context.Context, bin string, options ...string) (*Cluster, error) {
	return startCluster(ctx, bin, options, func(c *Cluster) error {
		initdb := []string{"-D", c.data(), "-U", "palmares", "-A", "trust", "-E", "UTF8", "--no-sync"}
		// A French collation exposes queries that leave the order to the
		// database. Before version 15 there is none: use the machine's.
		french := append(slices.Clone(initdb), "--locale-provider=icu", "--icu-locale=fr", "--locale=C.UTF-8")
		if c.command("initdb", french...).Run() == nil {
			return nil
		}
		return c.command("initdb", initdb...).Run()
	})
}

func startCluster(ctx context.Context, bin string, options []string, create func(*Cluster) error) (_ *Cluster, err error) {
	c := &Cluster{bin: bin}
	if c.dir, err = os.MkdirTemp("", "palmares-postgres-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.Stop()
			err = fmt.Errorf("start PostgreSQL: %w\n%s", err, c.log.String())
		}
	}()
	// In a process group of its own, Ctrl-C does not reach the server, which
	// tests still need while they end.
	c.attributes = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		uid, gid, err := unprivilegedUser()
		if err != nil {
			return nil, err
		}
		c.attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(c.dir, uid, gid); err != nil {
			return nil, err
		}
	}
	if err := create(c); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args := []string{"-D", c.data(), "-p", strconv.Itoa(port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=600"}
	for _, option := range options {
		args = append(args, "-c", option)
	}
	c.server = c.command("postgres", args...)
	c.URL = fmt.Sprintf("postgres://palmares@127.0.0.1:%d/postgres?sslmode=disable", port)
	return c, c.run(ctx)
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir, cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = c.dir, c.attributes, &c.log, &c.log
	return cmd
}

// run starts the server and waits until it accepts connections.
func (c *Cluster) run(ctx context.Context) error {
	if err := c.server.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, wait.Limit)
	defer cancel()
	db, err := sql.Open("postgres", c.URL)
	if err != nil {
		return err
	}
	defer db.Close()
	for {
		if err = db.PingContext(ctx); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Stop stops the server and removes its files.
func (c *Cluster) Stop() {
	c.end(syscall.SIGINT) // a fast shutdown, in PostgreSQL's terms
	_ = os.RemoveAll(c.dir)
}

// Crash ends the server like a power failure, with its data left in place.
func (c *Cluster) Crash() { c.end(syscall.SIGQUIT) } // an immediate shutdown

func (c *Cluster) end(signal syscall.Signal) {
	if c.server != nil && c.server.Process != nil {
		_ = c.server.Process.Signal(signal)
		_ = c.server.Wait()
	}
}

// Restart starts a crashed server again, on the same data and port.
func (c *Cluster) Restart(ctx context.Context) error {
	c.server = c.command("postgres", c.server.Args[1:]...)
	return c.run(ctx)
}

// Freeze suspends all processes of the server, like a machine that hangs.
func (c *Cluster) Freeze() error { return c.signalAll(syscall.SIGSTOP) }

// Thaw resumes a suspended server.
func (c *Cluster) Thaw() error { return c.signalAll(syscall.SIGCONT) }

// signalAll signals the parent first, so that it starts no further children.
func (c *Cluster) signalAll(signal syscall.Signal) error {
	if err := c.server.Process.Signal(signal); err != nil {
		return err
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", c.server.Process.Pid))
	if err != nil {
		return err
	}
	for _, child := range strings.Fields(string(children)) {
		pid, err := strconv.Atoi(child)
		if err != nil {
			return err
		}
		_ = syscall.Kill(pid, signal) // it may have ended
	}
	return nil
}

func unprivilegedUser() (uid, gid int, err error) {
	account, err := user.Lookup("postgres")
	if err != nil {
		if account, err = user.Lookup("nobody"); err != nil {
			return 0, 0, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody to run it as")
		}
	}
	if uid, err = strconv.Atoi(account.Uid); err != nil {
		return 0, 0, err
	}
	gid, err = strconv.Atoi(account.Gid)
	return uid, gid, err
}

// Standby is a server that replicates another one.
type Standby struct{ *Cluster }

// StartReplicated starts a primary server and a standby, which are stopped
// with the test.
func StartReplicated(t testing.TB) (*Cluster, *Standby) {
	t.Helper()
	bin, err := PostgreSQL.Ensure()
	if err != nil {
		t.Fatal(err)
	}
	primary, err := StartCluster(t.Context(), bin, "fsync=off", "wal_level=replica", "max_wal_senders=4")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(primary.Stop)
	standby, err := startCluster(t.Context(), bin, []string{"fsync=off"}, func(c *Cluster) error {
		return c.command("pg_basebackup", "-D", c.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync", "-d", primary.URL).Run()
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Stop)
	return primary, &Standby{standby}
}

// Pause stops the standby from replaying changes. The server reports the pause
// as requested first, and goes on replaying until it takes effect.
func (s *Standby) Pause(t testing.TB) {
	t.Helper()
	s.query(t, "SELECT pg_get_wal_replay_pause_state() FROM pg_wal_replay_pause()")
	wait.Until(t, "the standby is paused", func() bool { return s.query(t, "SELECT pg_get_wal_replay_pause_state()") == "paused" })
}

// Resume ends a pause.
func (s *Standby) Resume(t testing.TB) {
	t.Helper()
	s.query(t, "SELECT pg_wal_replay_resume()")
}

// CatchUp waits until the standby has everything its primary has now.
func (s *Standby) CatchUp(t testing.TB, primary *Cluster) {
	t.Helper()
	written := primary.query(t, "SELECT pg_current_wal_lsn()")
	wait.Until(t, "the standby has caught up", func() bool {
		return s.query(t, "SELECT pg_last_wal_replay_lsn() >= '"+written+"'") == "true"
	})
}

func (c *Cluster) query(t testing.TB, statement string) (result string) {
	t.Helper()
	db, err := sql.Open("postgres", c.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), statement).Scan(&result); err != nil {
		t.Fatal(err)
	}
	return result
}

// Freeze suspends the standby, like a machine that hangs.
func (s *Standby) Freeze(t testing.TB) {
	t.Helper()
	if err := s.Cluster.Freeze(); err != nil {
		t.Fatal(err)
	}
}

// Thaw resumes a suspended standby.
func (s *Standby) Thaw(t testing.TB) {
	t.Helper()
	if err := s.Cluster.Thaw(); err != nil {
		t.Fatal(err)
	}
}
