package main

import (
	"io"
	"os/exec"
	"testing"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// palmares returns a palmares command that uses a database.
func palmares(t testing.TB, cfg store.Config, args ...string) *exec.Cmd {
	t.Helper()
	return blackbox.Command(t, cfg, args...)
}

// result is the exit code and the output of a process.
type result struct {
	code     int
	out, err string
}

// runCmd runs a command until it exits.
func runCmd(t testing.TB, cmd *exec.Cmd) result {
	t.Helper()
	r := blackbox.Run(t, cmd)
	return result{r.Code, r.Out, r.Err}
}

// mustRun runs a command that must exit with code 0.
func mustRun(t testing.TB, cmd *exec.Cmd) result {
	t.Helper()
	r := blackbox.MustRun(t, cmd)
	return result{r.Code, r.Out, r.Err}
}

func newKey(t testing.TB, cfg store.Config, plan string) string {
	t.Helper()
	return blackbox.NewKey(t, cfg, plan)
}

func synthFile(t testing.TB, opts synth.Options) string {
	t.Helper()
	return blackbox.SynthFile(t, opts)
}

func writeFile(t testing.TB, name string, data []byte) string {
	t.Helper()
	return blackbox.WriteFile(t, name, data)
}

func freeAddress(t testing.TB) string {
	t.Helper()
	return testkit.FreeAddress(t)
}

func readAll(t testing.TB, r io.Reader) string {
	t.Helper()
	return blackbox.ReadAll(t, r)
}
