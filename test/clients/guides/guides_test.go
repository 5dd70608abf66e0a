package guides_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/web/prose"
)

// All code blocks of the guides run as a reader would run them: in order, in one
// folder, with a key and the address of this server. Sample outputs are compared
// with the real ones.
func TestGuides(t *testing.T) {
	t.Parallel()
	installTools(t)
	cfg := testkit.SQLite(t) // empty, so that --demo publishes every edition
	s := serveUnreliably(t, cfg)
	for _, name := range prose.GuideNames {
		if name == editors { // it changes the catalog
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReader(t, cfg, s, name)
			if name == "files" {
				r.installForFiles()
			}
			if r.mentions("YOUR_KEY") {
				r.key = blackbox.NewKey(t, cfg, "developer")
			}
			r.follow()
		})
	}
}

// editors is the guide that is followed on the machine of the server.
const editors = "editors"

// TestEditorsGuide follows the guide for editors with a catalog of its own on each
// database. An exported folder has the same guide.
func TestEditorsGuide(t *testing.T) {
	t.Parallel()
	installTools(t)
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		s := blackbox.Serve(t, cfg, "--demo")
		r := newReader(t, cfg, s, editors)
		r.env = []string{
			"PATH=" + filepath.Dir(blackbox.Path(t)) + string(os.PathListSeparator) + os.Getenv("PATH"),
			"DATABASE_URL=" + cfg.DatabaseURL, "PALMARES_DATA_DIR=" + cfg.DataDir, "PALMARES_LISTEN=" + s.Address,
		}
		r.follow()
		readme, err := os.ReadFile(filepath.Join(r.dir, "catalog", "README.md"))
		text := blackbox.ReadAll(t, s.Call(t, http.MethodGet, "/guides/editors.md", "").Body)
		check.True(t, err == nil && string(readme) == text, "got %v and another text in the exported folder, want the guide", err)
	})
}

// serveUnreliably starts a server behind a proxy that fails the first two requests
// of a program to each URL: it responds with 503, and then closes the connection,
// as busy servers and networks do. Every program in the guides must cope with that.
func serveUnreliably(t *testing.T, cfg store.Config) *blackbox.Server {
	t.Helper()
	var mu sync.Mutex
	requests := map[string]int{}
	var forward http.Handler
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agent, _, _ := strings.Cut(r.UserAgent(), "/")
		isProgram := agent == "node" || agent == "Python-urllib"
		mu.Lock()
		requests[r.Method+agent+r.URL.String()]++
		number := requests[r.Method+agent+r.URL.String()]
		mu.Unlock()
		switch {
		case !isProgram || number > 2 || r.Header.Get("Accept") == "text/event-stream": // which reconnects after seconds
			forward.ServeHTTP(w, r)
		case number == 1:
			w.Header().Set("Retry-After", "0")
			http.Error(w, `{"error":"The server is busy."}`, http.StatusServiceUnavailable)
		default:
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(proxy.Close)
	address := testkit.FreeAddress(t)
	forward = httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	return (*blackbox.Server)(testkit.StartAt(t, blackbox.Command(t, cfg, "serve", "--listen", address, "--demo", "--public-url", proxy.URL), address))
}

// installTools installs the tools that the code blocks use.
func installTools(t *testing.T) {
	t.Helper()
	for _, need := range []testkit.Need{testkit.Bash, testkit.Curl, testkit.Node, testkit.Python} {
		need.Ensure(t)
	}
}

// reader follows a guide.
type reader struct {
	*testing.T
	cfg    store.Config
	server *blackbox.Server
	blocks []block
	dir    string
	key    string
	env    []string
	last   string // output of the last command
}

// newReader reads a guide from a server.
func newReader(t *testing.T, cfg store.Config, s *blackbox.Server, name string) *reader {
	t.Helper()
	response := s.Call(t, http.MethodGet, "/guides/"+name+".md", "")
	text := blackbox.ReadAll(t, response.Body)
	check.MustTrue(t, response.StatusCode == http.StatusOK && !strings.Contains(text, "{{"), "%s: got %d %s, want 200", name, response.StatusCode, text)
	return &reader{T: t, cfg: cfg, server: s, blocks: blocksOf(t, text), dir: t.TempDir()}
}

// installForFiles provides the packages that the guide about files has its readers
// install.
func (r *reader) installForFiles() {
	r.Helper()
	const packages = "../../properties/panels/testdata"
	testkit.NPM(r.T, packages)
	modules, err := filepath.Abs(filepath.Join(packages, "node_modules"))
	check.OK(r, err)
	check.OK(r, os.Symlink(modules, filepath.Join(r.dir, "node_modules")))
	python, err := exec.LookPath(testkit.Pandas.Ensure(r.T)) // another one may be first in PATH
	check.OK(r, err)
	bin := r.TempDir()
	check.OK(r, os.WriteFile(filepath.Join(bin, "python3"), []byte("#!/bin/sh\nexec "+python+" \"$@\"\n"), 0o700))
	r.env = []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")}
}

// mentions reports whether a code block of the guide contains a word.
func (r *reader) mentions(word string) bool {
	return slices.ContainsFunc(r.blocks, func(b block) bool { return strings.Contains(b.text, word) })
}

// follow runs all blocks of the guide.
func (r *reader) follow() {
	r.Helper()
	run := map[string]bool{} // by file
	for i, b := range r.blocks {
		var err error
		switch {
		case b.IsFile():
			err = r.connect(b)
		case b.Language == "json" && b.Name != "":
			err = r.checkEvent(b)
		case !b.Runs() && (i == 0 || r.last == ""):
			err = fmt.Errorf("got a sample output before any command, want a command first")
		case b.Language == "json":
			err = compareJSON(b.text, r.last)
		case b.Language == "text":
			err = compareText(b.text, r.last)
		case b.Language == "graphql":
			err = r.query(b)
		case b.Name != "":
			err = r.save(b)
		case b.Language == "sh":
			for _, file := range saved(r.blocks[:i]) {
				run[file] = run[file] || strings.Contains(b.text, file)
			}
			if strings.Contains(b.text, "YOUR_SECRET") {
				err = r.receive(b)
			} else {
				err = r.run(b)
			}
		default:
			err = fmt.Errorf("got unknown language %q, want json, text, graphql or sh", b.Language)
		}
		if err != nil {
			r.Errorf("line %d, %s %s: %v", b.line, b.Language, b.Name, err)
		}
	}
	for _, file := range saved(r.blocks) {
		if !run[file] {
			r.Errorf("%s: got no command that runs it, want one", file)
		}
	}
}

// save writes a program to its file.
func (r *reader) save(b block) error {
	return os.WriteFile(filepath.Join(r.dir, b.Name), []byte(b.text), 0o600)
}

// saveAll writes some programs of the guide to their files.
func (r *reader) saveAll(files ...string) *reader {
	r.Helper()
	for _, b := range r.blocks {
		if slices.Contains(files, b.Name) {
			if err := r.save(b); err != nil {
				r.Fatal(err)
			}
		}
	}
	return r
}

// run runs a command until it exits or prints an expected string.
func (r *reader) run(b block) error {
	p := r.start(b.text)
	defer p.stop()
	err := p.waitFor(b.Until)
	r.last = p.out.String()
	if err == nil && r.last == "" {
		err = fmt.Errorf("got no output, want some")
	}
	return err
}

// shell runs a command that is not in the guide.
func (r *reader) shell(command, until string) string {
	r.Helper()
	if err := r.run(block{Info: prose.Info{Language: "sh", Until: until}, text: command}); err != nil {
		r.Fatal(err)
	}
	return r.last
}

// query sends the query of a GraphQL block.
func (r *reader) query(b block) error {
	body, err := json.Marshal(map[string]string{"query": b.text})
	if err != nil {
		return err
	}
	response := r.server.Call(r, http.MethodPost, "/graphql", string(body))
	r.last = blackbox.ReadAll(r, response.Body)
	if response.StatusCode != http.StatusOK || strings.Contains(r.last, `"errors"`) {
		return fmt.Errorf("got %d %s, want 200", response.StatusCode, r.last)
	}
	return nil
}

// checkEvent validates an event against its schema.
func (r *reader) checkEvent(b block) error {
	response := r.server.Call(r, http.MethodGet, "/schemas/events/"+b.Name+".json", "")
	schema, err := jsonschema.UnmarshalJSON(response.Body)
	if err != nil {
		return err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("event.json", schema); err != nil {
		return err
	}
	compiled, err := compiler.Compile("event.json")
	if err != nil {
		return err
	}
	event, err := jsonschema.UnmarshalJSON(strings.NewReader(b.text))
	if err != nil {
		return err
	}
	return compiled.Validate(event)
}

// connect checks the settings of an MCP client: it lists the tools of the server
// in them, over HTTP or by starting the command.
func (r *reader) connect(b block) error {
	var settings any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(b.text, "YOUR_KEY", r.key)), &settings); err != nil {
		return err
	}
	server := findServer(settings)
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	var out string
	switch {
	case server.Command == "palmares":
		cmd := blackbox.Command(r, r.cfg, server.Args...) // with the folder of the test's database
		in := check.Try(cmd.StdinPipe()).OK(r)
		replies := check.Try(cmd.StdoutPipe()).OK(r)
		check.OK(r, cmd.Start())
		check.Try(fmt.Fprintln(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`+
			"\n"+`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+list)).OK(r)
		lines := bufio.NewReader(replies)
		for range 2 {
			line := check.Try(lines.ReadString('\n')).OK(r)
			out += line
		}
		check.OK(r, in.Close())
		check.OK(r, cmd.Wait())
	default:
		headers := []string{"Accept", "application/json, text/event-stream"}
		for name, value := range server.Headers {
			headers = append(headers, name, value)
		}
		_, body, err := blackbox.Do(r.Context(), http.DefaultClient, http.MethodPost, server.URL+server.ServerURL, list, headers...)
		if err != nil {
			return err
		}
		out = string(body)
	}
	if !strings.Contains(out, `"name":"search_tools"`) {
		return fmt.Errorf("got %s from %+v, want a list of tools", out, server)
	}
	return nil
}

// mcpServer is a server in the settings of an MCP client.
type mcpServer struct {
	URL       string            `json:"url"`
	ServerURL string            `json:"server_url"`
	Headers   map[string]string `json:"headers"`
	Command   string            `json:"command"`
	Args      []string          `json:"args"`
}

// findServer returns the only server in the settings of a client, wherever in the
// file it is.
func findServer(settings any) (server mcpServer) {
	switch value := settings.(type) {
	case []any:
		return findServer(value[0])
	case map[string]any:
		data, err := json.Marshal(value)
		if err == nil && json.Unmarshal(data, &server) == nil && server.URL+server.ServerURL+server.Command != "" {
			return server
		}
		for _, inner := range value {
			if found := findServer(inner); found.URL+found.ServerURL+found.Command != "" {
				return found
			}
		}
	}
	return server
}

// process is a running command.
type process struct {
	cmd      *exec.Cmd
	out, err testkit.Log
	done     chan error
	stop     func()
}

// start starts a command in its own process group, so that its children can be
// stopped too.
func (r *reader) start(command string) *process {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), blackbox.Limit)
	p := &process{cmd: exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", strings.ReplaceAll(command, "YOUR_KEY", r.key)), done: make(chan error, 1)}
	p.cmd.Dir = r.dir
	// The same flags as the build of palmares, so that packages are compiled once.
	p.cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "PYTHONUNBUFFERED=1")
	p.cmd.Env = append(p.cmd.Env, r.env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Cancel = func() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }
	p.cmd.WaitDelay = 5 * time.Second
	if err := p.cmd.Start(); err != nil {
		cancel()
		r.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.done <- p.cmd.Wait()
	}()
	p.stop = func() {
		cancel()
		<-ended
	}
	return p
}

// waitFor waits for a string in the output, or for the exit if it is empty.
func (p *process) waitFor(text string) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case err := <-p.done:
			if err == nil && text != "" && !strings.Contains(p.out.String(), text) {
				err = fmt.Errorf("got an exit, want %q in the output first", text)
			}
			if err != nil {
				return fmt.Errorf("%w\n%s%s", err, p.out.String(), p.err.String())
			}
			return nil
		case <-ticker.C:
			if text != "" && strings.Contains(p.out.String(), text) {
				return nil
			}
		}
	}
}
