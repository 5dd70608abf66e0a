package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

func TestExportToLinkAndPipe(t *testing.T) {
	t.Parallel()
	cfg, dir := testkit.SQLite(t), t.TempDir()
	importDemo(t, cfg)

	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	check.OK(t, os.WriteFile(target, []byte("old"), 0o600))
	check.OK(t, os.Symlink(target, link))
	blackbox.MustRun(t, blackbox.Command(t, cfg, "export", link))
	if data, _ := os.ReadFile(target); string(data) != string(demo.Catalog()) {
		t.Errorf("got %d bytes in the target of the link, want the catalog", len(data))
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Error("got the symbolic link replaced, want it unchanged")
	}

	pipe := filepath.Join(dir, "pipe")
	check.OK(t, syscall.Mkfifo(pipe, 0o600))
	read := make(chan string, 1)
	go func() {
		file, err := os.Open(pipe)
		if err != nil {
			read <- err.Error()
			return
		}
		defer file.Close()
		data, _ := io.ReadAll(file)
		read <- string(data)
	}()
	blackbox.MustRun(t, blackbox.Command(t, cfg, "export", pipe))
	check.Equal(t, <-read, string(demo.Catalog()), "want the catalog")
}

func TestFileErrors(t *testing.T) {
	t.Parallel()
	cfg, dir := testkit.SQLite(t), t.TempDir()
	importDemo(t, cfg)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a directory":       {[]string{"export", dir}, dir + ": is a directory"},
		"a missing folder":  {[]string{"export", filepath.Join(dir, "no", "file")}, filepath.Join(dir, "no", "file") + ": no such file or directory"},
		"a full disk":       {[]string{"export", "/dev/full"}, "/dev/full: the disk is full"},
		"another full disk": {[]string{"generate", "--tools", "100", "/dev/full"}, "/dev/full: the disk is full"},
		"a file":            {[]string{"schemas", "/dev/null"}, "/dev/null: is not a directory"},
		"a file's folder":   {[]string{"schemas", "/dev/null/schemas"}, "/dev/null/schemas: is not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			if r := blackbox.Run(t, blackbox.Command(t, cfg, c.args...)); r.Code != 1 || r.Err != "palmares: "+c.want+"\n" {
				t.Errorf("got exit code %d and %q, want 1 and %q", r.Code, r.Err, c.want)
			}
		})
	}
	if r := blackbox.Run(t, blackbox.Command(t, store.Config{DataDir: filepath.Join(dir, "typo")}, "export")); r.Code != 1 || !strings.Contains(r.Err, "there is no database in") {
		t.Errorf("no database: got exit code %d and %q, want 1", r.Code, r.Err)
	}
	if _, err := os.Stat(filepath.Join(dir, "typo")); err == nil {
		t.Error("got a data directory created by the export, want none")
	}
}

// The schemas are written to a new or an existing folder, as the server serves them.
func TestSchemasCommand(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, blackbox.Demo(t), "--demo")
	dir := filepath.Join(t.TempDir(), "new", "schemas")
	for _, what := range []string{"a new folder", "an existing folder"} {
		r := blackbox.MustRun(t, blackbox.Command(t, store.Config{DataDir: "none"}, "schemas", dir))
		files := strings.Fields(r.Out)
		check.Equal(t, len(files), 5, "%s: %q", what, r.Out)
		for _, file := range files {
			written, err := os.ReadFile(file)
			check.OK(t, err)
			response := s.Call(t, http.MethodGet, "/schemas/feed/"+filepath.Base(file), "")
			served, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != 200 || !bytes.Equal(served, written) {
				t.Errorf("%s: got %d %s, want 200 and what was written", file, response.StatusCode, served)
			}
		}
	}
}

// An import succeeds even if its report cannot be printed.
func TestImportWithFullOutput(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	check.OK(t, err)
	defer full.Close()
	cfg := testkit.SQLite(t)
	cmd := blackbox.Command(t, cfg, "import", blackbox.WriteFile(t, "demo.ndjson", demo.Catalog()))
	cmd.Stdout = full
	check.Equal(t, cmd.Run(), nil)
	blackbox.MustRun(t, blackbox.Command(t, cfg, "export"))
}

func TestVerboseShowsCause(t *testing.T) {
	t.Parallel()
	cfg := store.Config{DatabaseURL: "postgres://u:s3cret@127.0.0.1:1/db", DataDir: "data"}
	quiet, verbose := blackbox.Run(t, blackbox.Command(t, cfg, "migrate", "status")), blackbox.Run(t, blackbox.Command(t, cfg, "--verbose", "migrate", "status"))
	check.Equal(t, blackbox.Run(t, blackbox.Command(t, cfg, "keys", "list", "ana@example.com")).Err, quiet.Err, "for a command about accounts")
	if quiet.Err != "palmares: the database cannot be reached\n" || !strings.HasPrefix(verbose.Err, quiet.Err+"cause: ") {
		t.Errorf("got %q and %q, want a cause in the second", quiet.Err, verbose.Err)
	}
	if strings.Contains(verbose.Err, "s3cret") {
		t.Errorf("got an error with the password, want it hidden: %s", verbose.Err)
	}
	if r := blackbox.Run(t, blackbox.Command(t, store.Config{DataDir: "data"}, "migrate", "status", "postgres://u:s3cret@h/db")); r.Code != 2 || strings.Contains(r.Err, "s3cret") {
		t.Errorf("got exit code %d and %q, want 2 without the password", r.Code, r.Err)
	}
}

func TestInterruptedCommands(t *testing.T) {
	t.Parallel()
	feed, err := os.ReadFile(blackbox.SynthFile(t, synth.Options{Tools: 300, Seed: 1}))
	if err != nil || len(feed) < 256<<10 {
		t.Fatalf("got a feed of %d bytes, %v, want more than a pipe holds", len(feed), err)
	}
	for name, args := range map[string][]string{
		"import from an endless pipe": {"import", "-"},
		"generate":                    {"generate", "--tools", "5000000"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := blackbox.Command(t, testkit.SQLite(t), args...)
			reader, writer, err := os.Pipe()
			check.OK(t, err)
			defer reader.Close()
			defer writer.Close()
			cmd.Stdin = reader
			out, err := cmd.StdoutPipe()
			check.OK(t, err)
			check.OK(t, cmd.Start())
			// Wait until the process reads or writes.
			if args[0] == "import" {
				_, err = writer.Write(feed)
			} else {
				_, err = io.ReadFull(out, make([]byte, 1000))
			}
			check.OK(t, err)
			go func() { _, _ = io.Copy(io.Discard, out) }() // so that the process does not block
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait()
			check.Equal(t, cmd.ProcessState.ExitCode(), 1, "exit code")
		})
	}
}

func TestDemoKeepsExistingCatalog(t *testing.T) {
	t.Parallel()
	editions, err := demo.Editions()
	check.OK(t, err)
	for name, catalog := range map[string]string{
		"another catalog": blackbox.SynthFile(t, synth.Options{Tools: 20, Seed: 1}),
		"another catalog with the date of the first edition": blackbox.WriteFile(t, "other.ndjson", feedtest.Catalog(editions[0].Date, feedtest.Tool("a"))),
		"the demo catalog without earlier editions":          blackbox.WriteFile(t, "demo.ndjson", demo.Catalog()),
	} {
		cfg := testkit.SQLite(t)
		blackbox.MustRun(t, blackbox.Command(t, cfg, "import", catalog))
		before := blackbox.MustRun(t, blackbox.Command(t, cfg, "export")).Out
		s := blackbox.Serve(t, cfg, "--demo")
		wait.Until(t, "the server is ready with release 1", func() bool {
			_, body := s.Get(t, "/readyz")
			return body["release"] == 1.0
		})
		_ = s.Cmd.Process.Signal(syscall.SIGTERM)
		s.WaitForExit(t)
		check.Equal(t, blackbox.MustRun(t, blackbox.Command(t, cfg, "export")).Out, before, "%s: another catalog after serve --demo", name)
	}
}
