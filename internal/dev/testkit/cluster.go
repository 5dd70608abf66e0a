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
	"syscall"
	"time"

	_ "github.com/lib/pq" // to ask the cluster whether it is up

	"palmares/internal/dev/testkit/wait"
)

// Cluster is a throw-away PostgreSQL server on loopback.
type Cluster struct {
	URL    string
	dir    string
	server *exec.Cmd
	log    bytes.Buffer
}

// StartCluster makes and starts a cluster from the binaries in bin, as an
// unprivileged user when run by root, whom PostgreSQL refuses. The options go
// to the server, as in "fsync=off".
func StartCluster(ctx context.Context, bin string, options ...string) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "palmares-postgres-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir}
	if err := c.start(ctx, bin, options); err != nil {
		c.Stop()
		return nil, fmt.Errorf("start PostgreSQL: %w\n%s", err, c.log.String())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, bin string, options []string) error {
	attributes, err := c.unprivileged()
	if err != nil {
		return err
	}
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir, cmd.SysProcAttr, cmd.Stdout, cmd.Stderr = c.dir, attributes, &c.log, &c.log
		return cmd
	}

	data := filepath.Join(c.dir, "data")
	initdb := []string{"-D", data, "-U", "palmares", "-A", "trust", "-E", "UTF8", "--no-sync"}
	// A French collation shows up any order that is left to the database;
	// servers before 15 cannot have one, and get the machine's own.
	french := append(slices.Clone(initdb), "--locale-provider=icu", "--icu-locale=fr", "--locale=C.UTF-8")
	if err := command("initdb", french...).Run(); err != nil {
		if err := command("initdb", initdb...).Run(); err != nil {
			return fmt.Errorf("initdb: %w", err)
		}
	}

	port, err := freePort()
	if err != nil {
		return err
	}
	args := []string{"-D", data, "-p", strconv.Itoa(port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=600"}
	for _, option := range options {
		args = append(args, "-c", option)
	}
	c.server = command("postgres", args...)
	if err := c.server.Start(); err != nil {
		c.server = nil
		return err
	}
	c.URL = fmt.Sprintf("postgres://palmares@127.0.0.1:%d/postgres?sslmode=disable", port)
	return waitUntilUp(ctx, c.URL)
}

// Stop ends the server and removes every trace of it.
func (c *Cluster) Stop() {
	if c.server != nil {
		_ = c.server.Process.Signal(syscall.SIGINT) // a fast shutdown, in PostgreSQL's terms
		_ = c.server.Wait()
	}
	_ = os.RemoveAll(c.dir)
}

// unprivileged hands the cluster's folder to somebody who is not root.
func (c *Cluster) unprivileged() (*syscall.SysProcAttr, error) {
	// A group of its own keeps a Ctrl-C at the terminal from the server, which
	// the tests still need to end in order.
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() != 0 {
		return attributes, nil
	}
	uid, gid, err := somebody()
	if err != nil {
		return nil, err
	}
	attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attributes, os.Chown(c.dir, uid, gid)
}

// somebody is a user without privileges.
func somebody() (uid, gid int, err error) {
	who, err := user.Lookup("postgres")
	if err != nil {
		if who, err = user.Lookup("nobody"); err != nil {
			return 0, 0, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody to run it as")
		}
	}
	if uid, err = strconv.Atoi(who.Uid); err != nil {
		return 0, 0, err
	}
	gid, err = strconv.Atoi(who.Gid)
	return uid, gid, err
}

func waitUntilUp(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, wait.Limit)
	defer cancel()
	db, err := sql.Open("postgres", url)
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
			return fmt.Errorf("it did not come up: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
