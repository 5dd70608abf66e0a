package main

import (
	"time"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/folder"
	"palmares/internal/catalog/record"

	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

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
			check.True(t, err == nil && response.StatusCode == 200 && bytes.Equal(served, written),
				"%s: got %d %s, want 200 and what was written", file, response.StatusCode, served)
		}
	}
}

func TestInterruptedCommands(t *testing.T) {
	t.Parallel()
	feed, err := os.ReadFile(blackbox.SynthFile(t, synth.Options{Tools: 300, Seed: 1}))
	check.MustTrue(t, err == nil && len(feed) >= 256<<10,
		"got a feed of %d bytes, %v, want more than a pipe holds", len(feed), err)
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

// TestLintOf10000Files counts CPU time, which other processes do not extend.
func TestLintOf10000Files(t *testing.T) {
	testkit.FullTier(t, "it writes 10,000 files")
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "catalog")
	var lines bytes.Buffer
	check.OK(t, synth.Write(t.Context(), &lines, synth.Options{Tools: 8000, Seed: 1}))
	files, err := folder.NewWriter(dir, record.Header{Format: record.FormatVersion, UpdatedAt: "2026-11-10"})
	check.OK(t, err)
	_, err = feed.Read(t.Context(), feed.NewLines(bytes.NewReader(lines.Bytes())), func(_ int, rec record.Record) { check.OK(t, files.Write(rec)) })
	check.OK(t, err)
	check.OK(t, files.Close(nil))
	if names, err := filepath.Glob(filepath.Join(dir, "*", "*.md")); err != nil || len(names) < 10_000 {
		t.Fatalf("got %d files, want at least 10,000", len(names))
	}
	cmd := blackbox.Command(t, store.Config{DataDir: "data"}, "lint", dir)
	r := blackbox.Run(t, cmd)
	if used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); used > 5*time.Second || r.Code != 0 {
		t.Errorf("got exit code %d after %v of CPU time, want 0 in less than 5 s: %s", r.Code, used, r.Err)
	}
}
