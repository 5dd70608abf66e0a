// Package check compares what a test got with what it wants, one line for each
// check. Functions continue after a difference, except OK, Must and MustTrue, for
// what the rest of the test needs. The last arguments say what was compared: one
// value, or a format and its values.
package check

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// OK ends the test if there is an error.
func OK(t testing.TB, err error, what ...any) {
	t.Helper()
	if err != nil {
		t.Fatal(label(what) + err.Error())
	}
}

// Result is what a call returned.
type Result[T any] struct {
	value T
	err   error
}

// Try takes the results of a call: check.Try(f()).OK(t) is the value.
func Try[T any](value T, err error) Result[T] { return Result[T]{value, err} }

// OK returns the value, and ends the test if there is an error.
func (r Result[T]) OK(t testing.TB, what ...any) T {
	t.Helper()
	OK(t, r.err, what...)
	return r.value
}

// Fails reports that there is no error.
func (r Result[T]) Fails(t testing.TB, what ...any) {
	t.Helper()
	Fails(t, r.err, what...)
}

// Is reports that the error is not of the wanted kind.
func (r Result[T]) Is(t testing.TB, want error, what ...any) {
	t.Helper()
	Is(t, r.err, want, what...)
}

// Fails reports that there is no error.
func Fails(t testing.TB, err error, what ...any) {
	t.Helper()
	if err == nil {
		t.Error(label(what) + "got no error")
	}
}

// Is reports that an error is not of the wanted kind.
func Is(t testing.TB, err, want error, what ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Error(label(what) + difference(err, want))
	}
}

// True reports that a condition does not hold, in these words.
func True(t testing.TB, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Errorf(format, args...)
	}
}

// MustTrue ends the test if a condition does not hold.
func MustTrue(t testing.TB, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Fatalf(format, args...)
	}
}

// Equal reports a difference.
func Equal[T comparable](t testing.TB, got, want T, what ...any) {
	t.Helper()
	if got != want {
		t.Error(label(what) + difference(got, want))
	}
}

// Must ends the test if there is a difference.
func Must[T comparable](t testing.TB, got, want T, what ...any) {
	t.Helper()
	if got != want {
		t.Fatal(label(what) + difference(got, want))
	}
}

// Slices reports that two lists differ.
func Slices[S ~[]E, E comparable](t testing.TB, got, want S, what ...any) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Error(label(what) + difference(got, want))
	}
}

// DeepEqual reports a difference between values that have no ==.
func DeepEqual(t testing.TB, got, want any, what ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Error(label(what) + difference(got, want))
	}
}

// Contains reports that a part is missing.
func Contains(t testing.TB, got, part string, what ...any) {
	t.Helper()
	if !strings.Contains(got, part) {
		t.Errorf("%sgot %.*s (%d bytes), want it to contain %q", label(what), 10*shownBytes, shown(got), len(got), part)
	}
}

// Lacks reports that a text has a part that it must not have.
func Lacks(t testing.TB, got, part string, what ...any) {
	t.Helper()
	if strings.Contains(got, part) {
		t.Errorf("%sgot %.*s (%d bytes), want it not to contain %q", label(what), 10*shownBytes, shown(got), len(got), part)
	}
}

func label(what []any) string {
	switch len(what) {
	case 0:
		return ""
	case 1:
		return fmt.Sprint(what[0]) + ": "
	}
	return fmt.Sprintf(what[0].(string), what[1:]...) + ": "
}

// shownBytes is the length up to which both values of a difference are shown whole.
const shownBytes = 400

// difference shows short values whole, texts from where they differ, and large values
// field by field.
func difference(got, want any) string {
	g, w := shown(got), shown(want)
	if len(g)+len(w) <= shownBytes && g != w {
		return fmt.Sprintf("got %s, want %s", g, w)
	}
	if g, isText := got.(string); isText {
		w := want.(string)
		at := 0
		for at < min(len(g), len(w)) && g[at] == w[at] {
			at++
		}
		from := max(0, at-shownBytes/4)
		return fmt.Sprintf("the texts differ at byte %d: got %.*q, want %.*q", at, shownBytes, g[from:], shownBytes, w[from:])
	}
	everything := gocmp.Exporter(func(reflect.Type) bool { return true })
	return "got (-) and want (+) differ:\n" + cmp.Or(gocmp.Diff(got, want, everything), fmt.Sprintf("got %s, want %s, which differ only as pointers", g, w))
}

func shown(value any) string {
	switch value := value.(type) {
	case string:
		return fmt.Sprintf("%q", value)
	case []string:
		return fmt.Sprintf("%q", value)
	case error, fmt.Stringer:
		return fmt.Sprint(value)
	}
	return fmt.Sprintf("%+v", value)
}
