// Package load runs palmares under load, for bench and faults.
package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit/blackbox"
)

// Owner is the email address of the account under test.
const Owner = "pro@example.com"

// Serve starts a server that trusts a proxy on loopback.
func Serve(t testing.TB, cfg store.Config, env ...string) *blackbox.Server {
	t.Helper()
	cmd := blackbox.Command(t, cfg, "serve")
	cmd.Env = append(append(cmd.Env, "PALMARES_LISTEN=127.0.0.1:0", "TRUSTED_PROXIES=127.0.0.1"), env...)
	// Ctrl-C must not reach the server, which ends with this process.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return blackbox.ServeCommand(t, cmd)
}

// Client sends each request on a new connection, uncompressed, so that no idle
// connection delays the shutdown of a server.
var Client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}

// Do sends a request with headers in pairs, as POST if it has a body, and reads
// the response.
func Do(ctx context.Context, client *http.Client, url, body string, headers ...string) (*http.Response, []byte, error) {
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	return blackbox.Do(ctx, client, method, url, body, headers...)
}

// Table is a Markdown table.
type Table struct{ rows [][]string }

// NewTable returns a table with a header, whose cells are separated by " | ".
func NewTable(header string) *Table { return &Table{[][]string{strings.Split(header, " | ")}} }

// Add adds a row.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(t.rows[0]))
	for i, cell := range cells {
		row[i] = fmt.Sprint(cell)
	}
	t.rows = append(t.rows, row)
}

// Print writes the table with aligned columns.
func (t *Table) Print(w io.Writer) {
	out := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	for i, row := range t.rows {
		fmt.Fprintf(out, "| %s\t|\n", strings.Join(row, "\t| "))
		if i == 0 {
			fmt.Fprintln(out, strings.Repeat("|---\t", len(row))+"|")
		}
	}
	fmt.Fprintln(out)
	_ = out.Flush()
}
