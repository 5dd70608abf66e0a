package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/wait"
)

// scratchVariable makes TestProcess use the shared server as a test of another package
// would.
const scratchVariable = "TEST_SHARED_SERVER"

func TestProcess(t *testing.T) {
	if os.Getenv(scratchVariable) == "" {
		t.Skip("other tests start this one")
	}
	Open(t, Postgres(t))
	t.Log("url=" + ServerURL(t))
}

// useServer runs TestProcess, and returns the URL that it used.
func useServer(t testing.TB, tmp string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestProcess$", "-test.v")
	cmd.Env = append(os.Environ(), scratchVariable+"=1", "TMPDIR="+tmp, URLVariable+"=")
	out, err := cmd.CombinedOutput()
	check.True(t, err == nil, "got %v, want success\n%s", err, out)
	_, url, _ := strings.Cut(string(out), "url=")
	url, _, _ = strings.Cut(url, "\n")
	return url
}

// serverProcess returns the process ID of the server in a directory for temporary
// files, or 0.
func serverProcess(tmp string) int {
	text, _ := os.ReadFile(filepath.Join(tmp, sharedName(), "postgres", "data", "postmaster.pid"))
	line, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(line)
	return pid
}

// supervisor returns the process ID of the supervisor, the parent of the server.
func supervisor(t testing.TB, server int) int {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(server) + "/status")
	if err != nil {
		SkipUnsupported(t, "processes are not visible on this system")
	}
	_, line, _ := strings.Cut(string(status), "PPid:")
	line, _, _ = strings.Cut(line, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	check.OK(t, err)
	return pid
}

// sharedTmp returns a directory that the user of PostgreSQL may enter.
func sharedTmp(t testing.TB) string {
	t.Helper()
	PostgreSQL.Ensure(t)
	tmp := check.Try(os.MkdirTemp("", "palmares-shared-")).OK(t)
	check.OK(t, os.Chmod(tmp, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	return tmp
}

func stopSupervisor(t testing.TB, tmp string) {
	t.Helper()
	server := serverProcess(tmp)
	check.OK(t, syscall.Kill(supervisor(t, server), syscall.SIGTERM))
	wait.Until(t, "the server stops with its supervisor", func() bool { return syscall.Kill(server, 0) != nil && serverProcess(tmp) == 0 })
}

// Test processes that start at once share one server.
func TestProcessesShareOneServer(t *testing.T) {
	tmp := sharedTmp(t)
	var urls [6]string
	var group sync.WaitGroup
	for i := range urls {
		group.Go(func() { urls[i] = useServer(t, tmp) })
	}
	group.Wait()
	for _, url := range urls {
		check.MustTrue(t, url != "" && url == urls[0], "got %q, want the same URL in each process", urls)
	}
	stopSupervisor(t, tmp)
}

// A run that was killed with its supervisor leaves a server behind. The next run stops
// it and starts another one.
func TestServerOfKilledSupervisor(t *testing.T) {
	tmp := sharedTmp(t)
	useServer(t, tmp)
	left := serverProcess(tmp)
	check.OK(t, syscall.Kill(supervisor(t, left), syscall.SIGKILL))
	wait.Until(t, "the supervisor ends", func() bool { return !supervised(filepath.Join(tmp, sharedName())) })
	useServer(t, tmp)
	check.True(t, syscall.Kill(left, 0) != nil, "got process %d still running, want it stopped", left)
	stopSupervisor(t, tmp)
}

// A full disk is reported in one sentence.
func TestServerOnFullDisk(t *testing.T) {
	tmp := SmallDisk(t, 1<<20)
	check.OK(t, os.Chmod(tmp, 0o755))
	cmd := exec.Command(os.Args[0], "-test.run=^TestProcess$", "-test.v")
	cmd.Env = append(os.Environ(), scratchVariable+"=1", "TMPDIR="+tmp, URLVariable+"=")
	out, err := cmd.CombinedOutput()
	check.True(t, err != nil && strings.Contains(string(out), "No space left on device"), "got %v, want a message about the disk\n%s", err, out)
}
