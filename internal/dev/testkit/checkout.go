package testkit

import (
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"palmares/internal/dev/testkit/repo"
	"palmares/internal/dev/testkit/wait"
)

// Checkout is a folder and a port for the tests of this checkout. Both derive from
// its path, so that their names in the environment are the same in each run and
// Go's test cache can be used.
type Checkout struct {
	id  uint32
	dir string
}

// LockCheckout waits until no other run uses this checkout, and locks it until
// the program ends.
func LockCheckout(t testing.TB) *Checkout {
	t.Helper()
	hash := fnv.New32a()
	fmt.Fprint(hash, repo.Root(t), os.Getuid())
	c := &Checkout{id: hash.Sum32()}
	c.dir = filepath.Join(os.TempDir(), fmt.Sprintf("palmares-%08x", c.id))
	lock, err := os.OpenFile(c.dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	Check(t, err)
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		fmt.Fprintln(os.Stderr, "waiting for another run in this checkout")
		Check(t, Lock(lock))
	}
	t.Cleanup(func() { _ = lock.Close() })
	return c
}

// StartCluster starts PostgreSQL in the folder of the checkout, at its port
// unless something else uses it.
func (c *Checkout) StartCluster(t testing.TB, options ...string) *Cluster {
	t.Helper()
	dir := filepath.Join(c.dir, "postgres")
	stopPostgres(t, filepath.Join(dir, "data"))
	Check(t, os.RemoveAll(dir))
	Check(t, os.MkdirAll(dir, 0o755))
	const first, ports = 10_000, 2_000 // below those of FreeAddress
	address := fmt.Sprintf("127.0.0.1:%d", first+c.id%ports)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		address = FreeAddress(t)
	} else {
		Check(t, listener.Close())
	}
	return newCluster(t, dir, address, options)
}

// stopPostgres stops the server that a killed run left behind.
func stopPostgres(t testing.TB, data string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	lines := strings.Split(string(text), "\n")
	if err != nil || len(lines) < 4 {
		return
	}
	address := "127.0.0.1:" + lines[3]
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return // the number may belong to another process by now
	}
	_ = conn.Close()
	pid, err := strconv.Atoi(lines[0])
	Check(t, err)
	Check(t, syscall.Kill(pid, syscall.SIGQUIT)) // an immediate shutdown
	wait.Until(t, "the PostgreSQL of an earlier run ends", func() bool { return syscall.Kill(pid, 0) != nil })
}

// Template returns the name of a template database.
func (c *Checkout) Template() string { return fmt.Sprintf("palmares_template_%08x", c.id) }

// CollectNotes creates the file for the notes of SkipUnsupported, which is printed
// at the end.
func (c *Checkout) CollectNotes(t testing.TB) {
	t.Helper()
	Check(t, os.MkdirAll(c.dir, 0o755))
	file := filepath.Join(c.dir, "notes")
	Check(t, os.WriteFile(file, nil, 0o600))
	Check(t, os.Setenv(notesVariable, file))
	t.Cleanup(func() {
		notes, _ := os.ReadFile(file)
		_, _ = os.Stderr.Write(notes)
	})
}
