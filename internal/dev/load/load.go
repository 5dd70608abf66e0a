// Package load runs palmares processes for bench and chaos.
package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"palmares/internal/dev/testkit"
)

// Owner is the account of CreateKey.
const Owner = "pro@example.com"

// Program is a palmares binary with a temporary directory.
type Program struct{ Path, Dir string }

// NewProgram creates the directory, which remove removes.
func NewProgram(binary string) (p Program, remove func(), err error) {
	if p.Path, err = filepath.Abs(binary); err != nil {
		return p, nil, err
	}
	if p.Dir, err = os.MkdirTemp("", "palmares-load-"); err != nil {
		return p, nil, err
	}
	remove = func() { _ = os.RemoveAll(p.Dir) }
	return p, remove, os.Chmod(p.Dir, 0o755) // nginx and PostgreSQL run as other users
}

// Command prepares a command with settings from env alone.
func (p Program) Command(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(p.Path, args...)
	cmd.Env, cmd.Dir = append(testkit.CleanEnv(), env...), p.Dir
	return cmd
}

// Usage is the time and peak memory of a finished process.
type Usage struct {
	Time time.Duration
	Peak int64 // bytes
}

// Run runs a command to its end and returns what it printed.
func (p Program) Run(env []string, args ...string) (string, Usage, error) {
	var out, errs bytes.Buffer
	cmd := p.Command(env, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return "", Usage{}, fmt.Errorf("palmares %s: %w\n%s", args[0], err, bytes.TrimSpace(errs.Bytes()))
	}
	u := Usage{Time: time.Since(start)}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.Peak = int64(usage.Maxrss) << 10 // kilobytes on Linux
	}
	return strings.TrimSpace(out.String()), u, nil
}

// CreateKey creates an account on the Pro plan with an API key.
func (p Program) CreateKey(env []string) (string, error) {
	if _, _, err := p.Run(env, "accounts", "create", Owner, "--plan", "pro"); err != nil {
		return "", err
	}
	key, _, err := p.Run(env, "keys", "create", Owner, "--name", "load")
	return key, err
}

var printedAddress = regexp.MustCompile(`http://([^/\s]+)/readyz`)

// Serve starts a server that trusts a proxy on loopback.
func (p Program) Serve(env []string, log io.Writer) (*Process, error) {
	cmd := p.Command(append([]string{"PALMARES_LISTEN=127.0.0.1:0", "TRUSTED_PROXIES=127.0.0.1"}, env...), "serve")
	cmd.Stderr = log
	return Start(cmd, printedAddress)
}

// Process is a running server.
type Process struct {
	Address string
	Pid     int
	ended   chan struct{}
}

// Start starts a server that prints its address, the pattern's first group.
func Start(cmd *exec.Cmd, pattern *regexp.Regexp) (*Process, error) {
	// Ctrl-C is for us alone, and the server ends when we do.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	address, err := testkit.StartListening(cmd, pattern)
	if err != nil {
		return nil, err
	}
	p := &Process{address, cmd.Process.Pid, make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Kill ends the process like a crash.
func (p *Process) Kill() {
	_ = syscall.Kill(p.Pid, syscall.SIGKILL)
	<-p.ended
}

// Stop shuts the process down gracefully.
func (p *Process) Stop() error {
	if p.Ended() {
		return nil
	}
	_ = syscall.Kill(p.Pid, syscall.SIGTERM)
	select {
	case <-p.ended:
		return nil
	case <-time.After(45 * time.Second):
		p.Kill()
		return errors.New("a server did not shut down")
	}
}

// Memory returns the resident memory now and at its peak.
func (p *Process) Memory() (resident, peak int64) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid))
	for line := range strings.Lines(string(status)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &resident)
		_, _ = fmt.Sscanf(line, "VmHWM: %d kB", &peak)
	}
	return resident << 10, peak << 10
}

// CPU returns the CPU time used so far.
func (p *Process) CPU() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
	if err != nil {
		return 0, err
	}
	// The name in parentheses may contain spaces. utime and stime are fields 14
	// and 15, in hundredths of a second.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0, err
	}
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}

// Client sends each request on a new connection, uncompressed, so that no idle
// connection delays the shutdown of a server.
var Client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}

// Do sends a request with headers in pairs, as POST with JSON if it has a body,
// and reads the response.
func Do(ctx context.Context, client *http.Client, url, body string, headers ...string) (*http.Response, []byte, error) {
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
		headers = append(headers, "Content-Type", "application/json")
	}
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return response, data, err
}

// Table is a Markdown table.
type Table struct{ rows [][]string }

// NewTable returns a table with a header.
func NewTable(header ...string) *Table { return &Table{[][]string{header}} }

// Add adds a row.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(t.rows[0]))
	for i, cell := range cells {
		row[i] = fmt.Sprint(cell)
	}
	t.rows = append(t.rows, row)
}

// Print writes the table with aligned columns.
func (t *Table) Print(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	for i, row := range t.rows {
		fmt.Fprintf(out, "| %s\t|\n", strings.Join(row, "\t| "))
		if i == 0 {
			fmt.Fprintln(out, strings.Repeat("|---\t", len(row))+"|")
		}
	}
	fmt.Fprintln(out)
	return out.Flush()
}
