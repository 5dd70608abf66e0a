package testkit

import (
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/repo"
	"palmares/internal/dev/testkit/wait"
)

// All test processes of a user share one PostgreSQL server. The first one that needs
// it starts a supervisor, a copy of itself that outlives it. Each process holds a
// shared lock on a file while it uses the server. The supervisor stops the server
// once nobody has held that lock for idleSeconds, however the tests ended.

// URLVariable is the environment variable with the URL of another PostgreSQL server
// to use. Its user must be allowed to create databases.
const URLVariable = "TEST_DATABASE_URL"

// supervisorVariable is set in the environment of the supervisor.
const supervisorVariable = "TEST_SUPERVISE_POSTGRES"

const (
	idleSeconds = 30 // between the packages of a run, and between two runs
	oldest      = 15 // as doctor requires
)

func init() {
	if os.Getenv(supervisorVariable) != "" {
		Main("PostgreSQL for tests", supervise)
		os.Exit(0)
	}
}

func sharedName() string { return "palmares-tests-" + strconv.Itoa(os.Getuid()) }

// sharedDir returns the directory of the shared server and its locks.
func sharedDir() (string, error) {
	dir := filepath.Join(os.TempDir(), sharedName())
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || !ok || int(owner.Uid) != os.Getuid() {
		return "", fmt.Errorf("%s belongs to another user: remove it, or set TMPDIR", dir)
	}
	return dir, nil
}

// openLock opens a file of the shared directory, which is unlocked when it is closed
// or the process ends.
func openLock(dir, name string, how int) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(file, how); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// Lock locks a file until it is closed.
func Lock(file *os.File) error { return flock(file, syscall.LOCK_EX) }

func flock(file *os.File, how int) error {
	for {
		if err := syscall.Flock(int(file.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// held are the files that stay locked until this process ends: an unreachable file
// would be closed.
var held []*os.File

// ServerURL returns the URL of the PostgreSQL server for tests, and starts the server
// if necessary. Without PostgreSQL, it skips the test.
func ServerURL(t testing.TB) string {
	t.Helper()
	if server := os.Getenv(URLVariable); server != "" {
		return server
	}
	PostgreSQL.Ensure(t)
	server := check.Try(sharedServer()).OK(t)
	return server
}

var sharedServer = sync.OnceValues(func() (string, error) {
	dir, err := sharedDir()
	if err != nil {
		return "", err
	}
	// A supervisor that is stopping the server holds this lock.
	users, err := openLock(dir, "users.lock", syscall.LOCK_SH)
	if err != nil {
		return "", err
	}
	held = append(held, users)
	starting, err := openLock(dir, "start.lock", syscall.LOCK_EX)
	if err != nil {
		return "", err
	}
	defer starting.Close()
	if server, err := os.ReadFile(filepath.Join(dir, "url")); err == nil && supervised(dir) && accepts(string(server)) {
		return string(server), nil
	}
	return startSupervisor()
})

// supervised reports whether a supervisor runs. One that was killed has left its
// server behind, which the next one stops.
func supervised(dir string) bool {
	lock, err := openLock(dir, "supervisor.lock", syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		_ = lock.Close()
	}
	return errors.Is(err, syscall.EWOULDBLOCK)
}

func accepts(server string) bool {
	db, err := sql.Open("postgres", server)
	if err != nil {
		return false
	}
	defer db.Close()
	return db.Ping() == nil
}

// startSupervisor starts this program again as a supervisor, and returns what it
// writes to its third file: the URL of the server. If that is empty, its log has the
// reason.
func startSupervisor() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	ready, result, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer ready.Close()
	log, err := os.CreateTemp("", "palmares-supervisor-")
	if err != nil {
		return "", err
	}
	defer os.Remove(log.Name())
	defer log.Close()
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), supervisorVariable+"=1")
	cmd.Dir = os.TempDir()
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{result}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C must not reach it
	if err := cmd.Start(); err != nil {
		return "", err
	}
	_ = result.Close()
	server, err := io.ReadAll(ready)
	if err == nil && len(server) == 0 {
		reason, _ := os.ReadFile(log.Name())
		err = errors.New(strings.TrimSpace(string(reason)))
	}
	return string(server), err
}

// supervise starts the server, and stops it when nobody uses it.
func supervise(t testing.TB) {
	syscall.CloseOnExec(3) // the server must not inherit it
	ready := os.NewFile(3, "ready")
	defer ready.Close()
	dir, err := sharedDir()
	check.OK(t, err)
	alive, err := openLock(dir, "supervisor.lock", syscall.LOCK_EX)
	check.OK(t, err)
	users, err := os.OpenFile(filepath.Join(dir, "users.lock"), os.O_RDWR, 0)
	check.OK(t, err)
	t.Cleanup(func() { _ = errors.Join(users.Close(), alive.Close()) }) // after the server has stopped
	data := filepath.Join(dir, "postgres")
	stopPostgres(t, filepath.Join(data, "data"))
	check.OK(t, os.RemoveAll(data))
	check.OK(t, os.Mkdir(data, 0o755))
	url := filepath.Join(dir, "url")
	t.Cleanup(func() { _ = os.Remove(url) })
	// Shared memory in the data directory disappears with it.
	cluster := newCluster(t, data, sharedAddress(t), []string{"fsync=off", "synchronous_commit=off", "full_page_writes=off",
		"dynamic_shared_memory_type=mmap"})
	checkVersion(t, cluster.URL)
	check.OK(t, os.WriteFile(url, []byte(cluster.URL), 0o600))
	_, err = ready.WriteString(cluster.URL)
	check.OK(t, errors.Join(err, ready.Close()))
	for idle := 0; ; idle++ {
		if flock(users, syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			idle = 0
		} else if idle >= idleSeconds {
			return // still locked: a new user waits until the server has stopped
		} else {
			check.OK(t, flock(users, syscall.LOCK_UN))
		}
		select {
		case <-t.Context().Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// sharedAddress returns an address that is the same in each run, unless something
// else uses it.
func sharedAddress(t testing.TB) string {
	t.Helper()
	const first, ports = 10_000, 2_000 // below those of FreeAddress
	address := fmt.Sprintf("127.0.0.1:%d", first+os.Getuid()%ports)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return FreeAddress(t)
	}
	check.OK(t, listener.Close())
	return address
}

func checkVersion(t testing.TB, server string) {
	t.Helper()
	db := check.Try(sql.Open("postgres", server)).OK(t)
	defer db.Close()
	var version int
	check.OK(t, db.QueryRow("SELECT current_setting('server_version_num')::int / 10000").Scan(&version))
	check.MustTrue(t, version >= oldest, "this is PostgreSQL %d: install version %d or newer", version, oldest)
}

// stopPostgres stops the server that a killed supervisor left behind.
func stopPostgres(t testing.TB, data string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	lines := strings.Split(string(text), "\n")
	if err != nil || len(lines) < 4 {
		return
	}
	conn, err := net.Dial("tcp", "127.0.0.1:"+lines[3])
	if err != nil {
		return // the process ID may belong to another process by now
	}
	_ = conn.Close()
	pid, err := strconv.Atoi(lines[0])
	check.OK(t, err)
	check.OK(t, syscall.Kill(pid, syscall.SIGQUIT)) // an immediate shutdown
	wait.Until(t, "the PostgreSQL of an earlier run ends", func() bool { return syscall.Kill(pid, 0) != nil })
}

var (
	templateMutex sync.Mutex
	templateName  string
)

// template returns the name of a migrated, empty database of the server. Copying it
// is faster than running the migrations. Its name depends on them, because checkouts
// share the server.
func template(t testing.TB) string {
	t.Helper()
	templateMutex.Lock()
	defer templateMutex.Unlock()
	if templateName != "" {
		return templateName
	}
	server := ServerURL(t)
	hash := fnv.New64a()
	check.OK(t, fs.WalkDir(os.DirFS(repo.Root(t)), "internal/core/store/migrations/postgres", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(repo.Root(t), path))
		fmt.Fprintf(hash, "%s\n%s", path, text)
		return err
	}))
	name := fmt.Sprintf("palmares_template_%016x", hash.Sum64())
	dir := check.Try(sharedDir()).OK(t)
	lock := check.Try(openLock(dir, "template.lock", syscall.LOCK_EX)).OK(t)
	defer lock.Close()
	db := check.Try(sql.Open("postgres", server)).OK(t)
	defer db.Close()
	var exists bool
	check.OK(t, db.QueryRow("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists))
	if !exists {
		// It gets its name when it is complete: a run may be killed at any time.
		migrate(t, createPostgres(t, name+"_new", ""))
		check.Try(db.Exec("ALTER DATABASE " + name + "_new RENAME TO " + name)).OK(t)
	}
	templateName = name
	return name
}
