package testkit

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"palmares/internal/dev/testkit/wait"
)

// Standby is a cluster that follows another one.
type Standby struct{ *Cluster }

// StartReplicated starts a cluster, and one that follows it. They go with the
// test.
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
	standby, err := primary.follow(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Stop)
	return primary, standby
}

// follow copies the cluster and starts the copy, which gets what is written
// from then on.
func (c *Cluster) follow(ctx context.Context, bin string) (*Standby, error) {
	dir, err := os.MkdirTemp("", "palmares-standby-")
	if err != nil {
		return nil, err
	}
	s := &Standby{&Cluster{dir: dir}}
	attributes, err := s.unprivileged()
	if err != nil {
		s.Stop()
		return nil, err
	}
	data := filepath.Join(dir, "data")
	copying := exec.CommandContext(ctx, filepath.Join(bin, "pg_basebackup"), "-D", data, "-R", "-X", "stream", "-c", "fast", "--no-sync", "-d", c.URL)
	copying.Dir, copying.SysProcAttr = dir, attributes
	if out, err := copying.CombinedOutput(); err != nil {
		s.Stop()
		return nil, fmt.Errorf("pg_basebackup: %w\n%s", err, out)
	}
	port, err := freePort()
	if err != nil {
		s.Stop()
		return nil, err
	}
	s.server = exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-p", strconv.Itoa(port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "max_connections=600")
	s.server.Dir, s.server.SysProcAttr, s.server.Stdout, s.server.Stderr = dir, attributes, &s.log, &s.log
	if err := s.server.Start(); err != nil {
		s.server = nil
		s.Stop()
		return nil, err
	}
	s.URL = fmt.Sprintf("postgres://palmares@127.0.0.1:%d/postgres?sslmode=disable", port)
	if err := waitUntilUp(ctx, s.URL); err != nil {
		s.Stop()
		return nil, fmt.Errorf("start the standby: %w\n%s", err, s.log.String())
	}
	return s, nil
}

// Pause makes the standby lag from now on. To ask for it is not enough: until
// the server says that it paused, what arrives is still replayed.
func (s *Standby) Pause(t testing.TB) {
	t.Helper()
	s.ask(t, "SELECT pg_get_wal_replay_pause_state() FROM pg_wal_replay_pause()")
	wait.Until(t, "the standby pauses", func() bool { return s.ask(t, "SELECT pg_get_wal_replay_pause_state()") == "paused" })
}

// Resume lets it catch up.
func (s *Standby) Resume(t testing.TB) {
	t.Helper()
	s.ask(t, "SELECT pg_wal_replay_resume()")
}

// CatchUp waits until it has what the other cluster has now.
func (s *Standby) CatchUp(t testing.TB, with *Cluster) {
	t.Helper()
	written := with.ask(t, "SELECT pg_current_wal_lsn()")
	wait.Until(t, "the standby catches up", func() bool {
		return s.ask(t, "SELECT pg_last_wal_replay_lsn() >= '"+written+"'") == "true"
	})
}

func (c *Cluster) ask(t testing.TB, statement string) (answer string) {
	t.Helper()
	db, err := sql.Open("postgres", c.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), statement).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// Freeze makes the standby silent, as a machine that hangs.
func (s *Standby) Freeze(t testing.TB) { s.signal(t, syscall.SIGSTOP) }

// Thaw lets it answer again.
func (s *Standby) Thaw(t testing.TB) { s.signal(t, syscall.SIGCONT) }

// signal reaches the server with all of its processes.
func (s *Standby) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", s.server.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, child := range strings.Fields(string(children)) {
		pid, err := strconv.Atoi(child)
		if err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(pid, signal) // one that just ended needs none
	}
	if err := s.server.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}
