package site

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"palmares/internal/web/page"
)

// fakeReader returns one tool, whose name is the ordinal of the read. Each read
// waits for its error from results.
type fakeReader struct {
	results           chan error
	started, finished atomic.Int64
}

func (r *fakeReader) read(_ context.Context, operation, list string) ([]namedPage, error) {
	if operation != "toolNames" {
		return nil, nil
	}
	r.started.Add(1)
	err := <-r.results
	return []namedPage{{Suggestion: page.Suggestion{Path: list + []string{"first", "second", "third"}[r.finished.Add(1)-1]}}}, err
}

func TestNamesAreReadOncePerRelease(t *testing.T) {
	synctest.Test(t, testNamesAreReadOnce)
}

func testNamesAreReadOnce(t *testing.T) {
	r := &fakeReader{results: make(chan error)}
	n := &nameCache{read: r.read}
	found := make(chan *catalogNames)
	for range 5 {
		go func() { found <- n.get(t.Context(), 1) }()
	}
	synctest.Wait()
	r.results <- nil
	for range 5 {
		if got := <-found; got == nil || got.tools.pages[0].Path != "/tools/first" {
			t.Errorf("got %+v, want /tools/first", got)
		}
	}
	if got := n.get(t.Context(), 1); got == nil || r.started.Load() != 1 {
		t.Errorf("got %d reads, want 1", r.started.Load())
	}

	// The previous names are used while those of the next release are read.
	for range 3 {
		if got := n.get(t.Context(), 2); got == nil || got.release != 1 {
			t.Errorf("got %+v, want the names of release 1", got)
		}
	}
	synctest.Wait()
	r.results <- nil
	synctest.Wait()
	if path := n.get(t.Context(), 2).tools.pages[0].Path; path != "/tools/second" {
		t.Errorf("got %s, want /tools/second", path)
	}
	if r.started.Load() != 2 {
		t.Errorf("got %d reads, want 2", r.started.Load())
	}
}

// Requests wait for names only for a limited time, and a failed read is retried.
func TestReadingNamesFails(t *testing.T) {
	synctest.Test(t, testReadingNamesFails)
}

func testReadingNamesFails(t *testing.T) {
	r := &fakeReader{results: make(chan error)}
	n := &nameCache{read: r.read}
	start := time.Now()
	if got := n.get(t.Context(), 1); got != nil || time.Since(start) != waitForNames { // synctest's clock
		t.Errorf("got %+v after %v, want none after %v", got, time.Since(start), waitForNames)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if got := n.get(canceled, 1); got != nil {
		t.Errorf("canceled request: got %+v, want none", got)
	}
	r.results <- errors.New("database unavailable")
	synctest.Wait()
	go func() { r.results <- nil }()
	if got := n.get(t.Context(), 1); got == nil || got.tools.pages[0].Path != "/tools/second" {
		t.Errorf("got %+v, want /tools/second", got)
	}
}

func TestCompletions(t *testing.T) {
	named := func(path, name string, score float64) namedPage {
		return namedPage{Suggestion: page.Suggestion{Path: path, Name: name}, category: "Rédaction", score: &score}
	}
	c := newCompletions(
		[]namedPage{named("/tools/plume", "Plume", 8.1), named("/tools/ecritoire-cie", "Écritoire & Cie", 8.7), named("/tools/plumier", "Plumier", 9), named("/tools/porte-plume", "Porte-plume", 9.5)},
		[]namedPage{{Suggestion: page.Suggestion{Path: "/categories/redaction", Name: "Rédaction"}}},
		[]namedPage{{Suggestion: page.Suggestion{Path: "/cimetiere/plumeau", Name: "Plumeau"}}},
		[]namedPage{{Suggestion: page.Suggestion{Path: "/comparatifs/x", Name: "Plume ou Écritoire & Cie ?"}}},
	)
	for typed, want := range map[string][]string{
		"PLUM":        {"/tools/plumier", "/tools/plume", "/cimetiere/plumeau", "/comparatifs/x", "/tools/porte-plume"},
		"plume":       {"/tools/plume", "/cimetiere/plumeau", "/comparatifs/x", "/tools/porte-plume"},
		"ecritoire c": {"/tools/ecritoire-cie", "/comparatifs/x"},
		"cie":         {"/tools/ecritoire-cie", "/comparatifs/x"},
		"rÉd":         {"/categories/redaction"},
		"lume":        nil,
		" & ":         nil,
	} {
		var got []string
		for _, p := range c.complete(typed) {
			got = append(got, p.Path)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", typed, got, want)
		}
	}
	var many []namedPage
	for i := range 5_000 {
		many = append(many, named(fmt.Sprintf("/tools/t-%d", i), fmt.Sprintf("Outil %d", i), 5))
	}
	if got := newCompletions(many).complete("outil"); len(got) != maxCompletions {
		t.Errorf("got %d completions, want %d", len(got), maxCompletions)
	}
}
