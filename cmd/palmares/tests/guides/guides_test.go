package guides_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/web/guide"
)

// Every block of every guide is run as a reader would run it: in the order in
// which it is read, in one folder, with a key and this server's address. What
// is shown as an answer is compared with what really came.
func TestGuides(t *testing.T) {
	t.Parallel()
	haveTools(t)
	cfg := blackbox.Demo(t)
	s := blackbox.Serve(t, cfg, "--demo")
	for _, name := range guide.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReader(t, cfg, s, name)
			if r.mentions("YOUR_KEY") {
				r.key = blackbox.NewKey(t, cfg, "developer")
			}
			r.follow()
		})
	}
}

// haveTools sees to what snippets are written for.
func haveTools(t *testing.T) {
	t.Helper()
	for _, need := range []testkit.Need{testkit.Bash, testkit.Curl, testkit.Node, testkit.Python} {
		if _, err := need.Ensure(); err != nil {
			t.Fatal(err)
		}
	}
}

// reader is somebody who works through a guide.
type reader struct {
	*testing.T
	cfg    store.Config
	server *blackbox.Server
	blocks []block
	dir    string
	key    string
	last   string // what the last command printed; empty before the first
}

// newReader opens a guide, as it is served.
func newReader(t *testing.T, cfg store.Config, s *blackbox.Server, name string) *reader {
	t.Helper()
	answer := s.Call(t, http.MethodGet, "/guides/"+name+".md", "")
	text := blackbox.ReadAll(t, answer.Body)
	if answer.StatusCode != http.StatusOK || strings.Contains(text, "{{") {
		t.Fatalf("%d: %s", answer.StatusCode, text)
	}
	return &reader{T: t, cfg: cfg, server: s, blocks: blocksOf(t, text), dir: t.TempDir()}
}

// mentions tells whether a placeholder has to be filled.
func (r *reader) mentions(word string) bool {
	return slices.ContainsFunc(r.blocks, func(b block) bool { return strings.Contains(b.text, word) })
}

// follow does everything that the guide says.
func (r *reader) follow() {
	r.Helper()
	run := map[string]bool{} // which files were
	for i, b := range r.blocks {
		var err error
		switch {
		case b.Language == "json" && b.Name != "":
			err = r.checkEvent(b)
		case !b.Runs() && (i == 0 || r.last == ""):
			err = fmt.Errorf("nothing was run of which this could be the answer")
		case b.Language == "json":
			err = answered(b.text, r.last)
		case b.Language == "text":
			err = printed(b.text, r.last)
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
			err = fmt.Errorf("nobody knows how to run %q", b.Language)
		}
		if err != nil {
			r.Errorf("line %d, %s %s: %v", b.line, b.Language, b.Name, err)
		}
	}
	for _, file := range saved(r.blocks) {
		if !run[file] {
			r.Errorf("%s is never run", file)
		}
	}
}

// save writes a program to its file.
func (r *reader) save(b block) error {
	return os.WriteFile(filepath.Join(r.dir, b.Name), []byte(b.text), 0o600)
}

// saveAll is for who skips to the programs.
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

// run runs a command, to its end or until it says what it is to say.
func (r *reader) run(b block) error {
	p := r.start(b.text)
	defer p.stop()
	err := p.waitFor(b.Until)
	r.last = p.out.String()
	if err == nil && r.last == "" {
		err = fmt.Errorf("it prints nothing")
	}
	return err
}

// shell is run for a command that the test makes up.
func (r *reader) shell(command, until string) string {
	r.Helper()
	if err := r.run(block{Info: guide.Info{Language: "sh", Until: until}, text: command}); err != nil {
		r.Fatal(err)
	}
	return r.last
}

// query asks what a GraphQL block asks.
func (r *reader) query(b block) error {
	body, err := json.Marshal(map[string]string{"query": b.text})
	if err != nil {
		return err
	}
	answer := r.server.Call(r, http.MethodPost, "/graphql", string(body))
	r.last = blackbox.ReadAll(r, answer.Body)
	if answer.StatusCode != http.StatusOK || strings.Contains(r.last, `"errors"`) {
		return fmt.Errorf("%d: %s", answer.StatusCode, r.last)
	}
	return nil
}

// checkEvent holds an event against its schema.
func (r *reader) checkEvent(b block) error {
	answer := r.server.Call(r, http.MethodGet, "/schemas/events/"+b.Name+".json", "")
	schema, err := jsonschema.UnmarshalJSON(answer.Body)
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

// process is a command of a guide at work.
type process struct {
	cmd      *exec.Cmd
	out, err testkit.Log
	done     chan error
	stop     func()
}

// start runs a command with everything that it starts itself, so that nothing
// of it is left.
func (r *reader) start(command string) *process {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), blackbox.Limit)
	p := &process{cmd: exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", strings.ReplaceAll(command, "YOUR_KEY", r.key)), done: make(chan error, 1)}
	p.cmd.Dir = r.dir
	// As palmares is built for tests, so that no library is compiled twice.
	p.cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOWORK=off", "PYTHONUNBUFFERED=1")
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

// waitFor waits for something to be said, or for the end if it is nothing.
func (p *process) waitFor(said string) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case err := <-p.done:
			if err == nil && said != "" && !strings.Contains(p.out.String(), said) {
				err = fmt.Errorf("it ends without saying %q", said)
			}
			if err != nil {
				return fmt.Errorf("%w\n%s%s", err, p.out.String(), p.err.String())
			}
			return nil
		case <-ticker.C:
			if said != "" && strings.Contains(p.out.String(), said) {
				return nil
			}
		}
	}
}

// Every address that a guide, or the text for language models, leads to is
// there.
func TestGuidesLeadSomewhere(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo")
	var all bytes.Buffer
	for _, path := range []string{"/llms.txt", "/llms-full.txt"} {
		answer := s.Call(t, http.MethodGet, path, "")
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d", path, answer.StatusCode)
		}
		all.WriteString(blackbox.ReadAll(t, answer.Body))
	}
	seen := map[string]bool{}
	for _, rest := range strings.Split(all.String(), "](http://"+s.Address)[1:] {
		path, _, _ := strings.Cut(rest, ")")
		path, _, _ = strings.Cut(path, "#")
		if seen[path] {
			continue
		}
		seen[path] = true
		// Pages of the account send strangers to sign in.
		if answer := s.Call(t, http.MethodGet, path, ""); answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d links are found", len(seen))
	}
}
