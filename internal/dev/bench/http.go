package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"palmares/internal/dev/testkit"
)

// The HTTP part: a whole server under load, against a bare one that writes the
// same bytes. Both take turns, round after round.

const (
	connections = 16
	turn        = 1500 * time.Millisecond
	turns       = 4
)

// fight is one row of its table.
type fight struct {
	what, database string
	ours, theirs   outcome
	goal           float64
	memory         int64 // of our server, after it
}

func (b *bench) http(ctx context.Context) error {
	address, drop, err := testkit.Scratch(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = drop() }()
	for _, database := range []struct {
		name string
		env  []string
		url  string
	}{
		{"SQLite", []string{"PALMARES_DATA_DIR=" + b.dir + "/http"}, ""},
		{"PostgreSQL", []string{"DATABASE_URL=" + address}, address},
	} {
		fmt.Fprintf(os.Stderr, "%s, HTTP against a bare server\n", database.name)
		if err := b.contests(database.name, database.env, database.url); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) contests(database string, env []string, url string) error {
	if _, err := b.process(env, "import", b.feed(5_000)); err != nil {
		return err
	}
	key, err := b.key(env)
	if err != nil {
		return err
	}
	ours, err := b.serve(env)
	if err != nil {
		return err
	}
	defer ours.stop()
	idle := ours.memory()
	list, err := fetch("http://" + ours.address + "/api/v1/tools")
	if err != nil {
		return err
	}
	query := `{"query":"{tools(limit: 50) {items {` + toolFields + `} meta {total page limit pages}}}"}`
	header, err := headers("http://"+ours.address+"/api/v1/tools", key)
	if err != nil {
		return err
	}
	tag := header.Get("Etag")
	theirs, err := startBare(bare{Body: list, Gzipped: compress(list), Header: header, DatabaseURL: url})
	if err != nil {
		return err
	}
	defer theirs.stop()
	bearer := "Authorization: Bearer " + key + "\r\n"
	post := func(path, headers string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s", path, len(query), headers, query)
	}
	rows := []struct {
		what         string
		ours, theirs load
		goal         float64
	}{
		{"hit", get("/api/v1/tools", bearer), get("/plain", ""), 0.85},
		{"hit, against the body without our headers", get("/api/v1/tools", bearer), get("/body", ""), 0},
		{"hit, gzip", get("/api/v1/tools", bearer+"Accept-Encoding: gzip\r\n"), get("/gzip", ""), 0.85},
		{"304", answering(304, get("/api/v1/tools", bearer+"If-None-Match: "+tag+"\r\n")), answering(304, get("/304", "")), 0.8},
		{"hit, GraphQL POST", load{Requests: []string{post("/graphql", bearer)}}, load{Requests: []string{post("/post", "")}}, 0.6},
	}
	for _, row := range rows {
		if err := b.contend(row.what, database, row.ours, row.theirs, row.goal, ours, theirs.address); err != nil {
			return err
		}
	}
	anonymous := get("/api/v1/tools", "")
	anonymous.Addresses = true
	if err := b.contend("hit, 1,000,000 addresses, against hit with a key", database, anonymous, get("/api/v1/tools", bearer), 0.8, ours, ours.address); err != nil {
		return err
	}
	b.memories = append(b.memories, fmt.Sprintf("%s: %s idle, %s after this load", database, bytes(idle), bytes(ours.memory())))
	if url == "" {
		return nil
	}
	slugs, err := someSlugs(ours.address)
	if err != nil {
		return err
	}
	for _, row := range []struct {
		what         string
		ours, theirs load
		goal         float64
	}{
		{"miss, list of 50", get("/api/v1/tools?score_min=0.000000"+varying, bearer), get("/list?score_min=0.000000"+varying, ""), 0.8},
		{"miss, one tool", each("/api/v1/tools/", slugs, bearer), each("/tools/", slugs, ""), 0.7},
	} {
		// A cache of nothing: every tool is asked for again before it could come back.
		small, err := b.serve(append(env, "PALMARES_CACHE_MB=1"))
		if err != nil {
			return err
		}
		err = b.contend(row.what, database, row.ours, row.theirs, row.goal, small, theirs.address)
		small.stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// key is one of the Pro plan.
func (b *bench) key(env []string) (string, error) {
	if _, err := b.process(env, "accounts", "create", "bench@example.com", "--plan", "pro"); err != nil {
		return "", err
	}
	cmd := exec.Command(b.palmares, "keys", "create", "bench@example.com")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

func get(path, headers string) load {
	return load{Requests: []string{"GET " + path + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n"}}
}

func each(path string, names []string, headers string) load {
	var l load
	for _, name := range names {
		l.Requests = append(l.Requests, get(path+name, headers).Requests...)
	}
	return l
}

func answering(status int, l load) load {
	l.Status = status
	return l
}

func (b *bench) contend(what, database string, ours, theirs load, goal float64, server *running, other string) error {
	fmt.Fprintf(os.Stderr, "  %s\n", what)
	c := fight{what: what, database: database, goal: goal}
	ours.Address, theirs.Address = server.address, other
	for i := range turns + 1 {
		for side, l := range []load{ours, theirs} {
			l.Connections, l.Duration = connections, turn
			if l.Status == 0 {
				l.Status = http.StatusOK
			}
			got, err := sendLoad(l)
			if err != nil {
				return err
			}
			if got.Wrong > 0 {
				return fmt.Errorf("%s: %d of %d answers have another status", what, got.Wrong, got.Requests)
			}
			if i == 0 {
				continue // to warm up
			}
			total := &c.ours
			if side == 1 {
				total = &c.theirs
			}
			total.Requests += got.Requests
			total.Took += got.Took
			total.P50, total.P99 = max(total.P50, got.P50), max(total.P99, got.P99)
		}
	}
	c.memory = server.memory()
	b.fights = append(b.fights, c)
	return nil
}

// sendLoad runs the load generator.
func sendLoad(l load) (result outcome, err error) {
	input, err := json.Marshal(l)
	if err != nil {
		return result, err
	}
	cmd := exec.Command(os.Args[0], "load")
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(input)), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return result, err
	}
	return result, json.Unmarshal(out, &result)
}

// running is a server's process.
type running struct {
	cmd     *exec.Cmd
	address string
}

func (r *running) stop() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

// memory is what the process has resident, as Linux tells it.
func (r *running) memory() int64 { return r.status("VmRSS") }

// peak is the most that it ever had.
func (r *running) peak() int64 { return r.status("VmHWM") }

func (r *running) status(name string) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	var kilobytes int64
	if found := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(status); found != nil {
		_, _ = fmt.Sscan(string(found[1]), &kilobytes)
	}
	return kilobytes << 10
}

// serve starts palmares behind a proxy that it trusts.
func (b *bench) serve(env []string) (*running, error) {
	cmd := exec.Command(b.palmares, "serve", "--listen", "127.0.0.1:0", "--trusted-proxies", "127.0.0.1")
	cmd.Env = append(os.Environ(), env...)
	return started(cmd, regexp.MustCompile(`http://([^/\s]+)/readyz`))
}

func startBare(b bare) (*running, error) {
	input, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Args[0], "bare")
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(input)), os.Stderr
	return started(cmd, regexp.MustCompile(`^(\S+)$`))
}

// started waits for a process to say where it listens.
func started(cmd *exec.Cmd, says *regexp.Regexp) (*running, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if found := says.FindStringSubmatch(lines.Text()); found != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return &running{cmd, found[1]}, nil
		}
	}
	_ = cmd.Process.Kill()
	return nil, errors.New("a server did not start")
}

func fetch(address string) ([]byte, error) {
	response, err := (&http.Client{Transport: &http.Transport{DisableCompression: true}}).Get(address)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// headers are those of an answer, but for what net/http adds itself.
func headers(address, key string) (http.Header, error) {
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	response, err := (&http.Client{Transport: &http.Transport{DisableCompression: true}}).Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	response.Header.Del("Date")
	response.Header.Del("Content-Length")
	return response.Header, nil
}

func someSlugs(address string) (slugs []string, err error) {
	for page := range 20 {
		data, err := fetch(fmt.Sprintf("http://%s/api/v1/pricing?limit=200&page=%d", address, page+1))
		if err != nil {
			return nil, err
		}
		var list struct{ Data []struct{ Slug string } }
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, err
		}
		for _, tool := range list.Data {
			slugs = append(slugs, tool.Slug)
		}
	}
	return slugs, nil
}

func compress(data []byte) []byte {
	var out strings.Builder
	w := gzip.NewWriter(&out)
	_, _ = w.Write(data)
	_ = w.Close()
	return []byte(out.String())
}

func (b *bench) printContests(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| over HTTP, 16 connections\t| database\t| ours, a second\t| by hand\t| ratio\t| goal\t| p50\t| p99\t|")
	fmt.Fprintln(table, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, c := range b.fights {
		fmt.Fprintf(table, "| %s\t| %s\t| %.0f\t| %.0f\t| %.2f\t| %.2f\t| %s\t| %s\t|\n", c.what, c.database,
			c.ours.perSecond(), c.theirs.perSecond(), c.ours.perSecond()/c.theirs.perSecond(), c.goal,
			c.ours.P50.Round(10*time.Microsecond), c.ours.P99.Round(10*time.Microsecond))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, line := range b.memories {
		fmt.Fprintf(w, "\n%s\n", line)
	}
	return nil
}
