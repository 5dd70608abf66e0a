package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

// openTerminal returns both ends of a new pseudoterminal.
func openTerminal(t *testing.T) (control, terminal *os.File) {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	check.OK(t, err)
	t.Cleanup(func() { _ = control.Close() })
	ioctl := func(request uintptr, value *int32) {
		if _, _, code := syscall.Syscall(syscall.SYS_IOCTL, control.Fd(), request, uintptr(unsafe.Pointer(value))); code != 0 {
			t.Fatal(code)
		}
	}
	var locked, number int32
	ioctl(syscall.TIOCSPTLCK, &locked)
	ioctl(syscall.TIOCGPTN, &number)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	check.OK(t, err)
	t.Cleanup(func() { _ = terminal.Close() })
	return control, terminal
}

// On a terminal, the operator sees what will be lost and has to type yes.
func TestConfirmPruning(t *testing.T) {
	t.Parallel()
	cfg := testkit.SQLite(t)
	publishEditions(t, cfg)
	const prompt = "Releases 1 (2026-03-03) to 4 (2026-06-09) will no longer be readable. This cannot be undone.\n" +
		"Releases 5 (2026-07-07) to 8 (2026-11-10) can still be read.\nType yes to continue: "
	for _, c := range []struct {
		input  string
		signal os.Signal
		code   int
		err    string
	}{
		{"no\n", nil, 1, "palmares: nothing was changed: not confirmed\n"},
		{"\n", nil, 1, "palmares: nothing was changed: not confirmed\n"},
		{"y\n", nil, 1, "palmares: nothing was changed: not confirmed\n"},
		{"\x04", nil, 1, "palmares: nothing was changed: not confirmed\n"}, // end of file
		{"", os.Interrupt, 1, "\npalmares: nothing was changed: interrupted\n"},
		{"yes\n", nil, 0, ""},
	} {
		control, terminal := openTerminal(t)
		cmd := blackbox.Command(t, cfg, "history", "prune", "--before", "5")
		var errs testkit.Log
		var out bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, &out, &errs
		check.OK(t, cmd.Start())
		wait.Until(t, "the prompt is shown", func() bool { return strings.HasSuffix(errs.String(), ": ") })
		if c.signal != nil {
			check.OK(t, cmd.Process.Signal(c.signal))
		}
		_, err := control.WriteString(c.input)
		check.OK(t, err)
		_ = cmd.Wait()
		if got := errs.String(); cmd.ProcessState.ExitCode() != c.code || got != prompt+c.err {
			t.Errorf("%q: got exit code %d and %q, want %d and %q", c.input, cmd.ProcessState.ExitCode(), got, c.code, prompt+c.err)
		}
		if pruned := strings.Contains(readable(t, cfg), "no"); pruned != (c.code == 0) || (out.Len() > 0) != pruned {
			t.Errorf("%q: got history pruned: %t and output %q, want pruned: %t", c.input, pruned, out.String(), c.code == 0)
		}
	}
}
