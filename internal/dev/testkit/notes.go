package testkit

import (
	"fmt"
	"os"
	"testing"
)

// notesVariable names the file in which tests that could not run say so.
// Withpostgres shows it at the end: nothing is skipped in silence.
const notesVariable = "TEST_NOTES"

// CannotRun skips a test that this machine does not allow.
func CannotRun(t testing.TB, why string) {
	t.Helper()
	file, err := os.OpenFile(os.Getenv(notesVariable), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatalf("cannot run here: %s", why) // nobody would show the note
	}
	defer file.Close()
	fmt.Fprintf(file, "not run: %s: %s\n", t.Name(), why)
	t.Skip(why)
}

// CollectNotes starts a file for notes; print shows what was written there.
func CollectNotes() (print func(), err error) {
	file, err := os.CreateTemp("", "palmares-notes-")
	if err != nil {
		return nil, err
	}
	_ = file.Close()
	return func() {
		notes, _ := os.ReadFile(file.Name())
		_, _ = os.Stderr.Write(notes)
		_ = os.Remove(file.Name())
	}, os.Setenv(notesVariable, file.Name())
}
