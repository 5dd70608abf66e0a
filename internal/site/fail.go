package site

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"strings"

	"palmares/graph"
	"palmares/internal/fold"
	"palmares/internal/near"
	"palmares/internal/problem"
)

// trouble is the data of the page of a problem.
type trouble struct {
	Title, Text string
	Nearest     []suggestion
	RequestID   string // for what only we can mend
}

// suggestion is a page that may have been meant.
type suggestion struct{ Path, Name string }

// titles are what the page of a problem is headed with.
var titles = map[problem.Code]string{
	problem.NotFound:    "There is no such page",
	problem.BadInput:    "This cannot be asked",
	problem.TooMany:     "Too much at once",
	problem.Unavailable: "The catalog does not answer",
	problem.Timeout:     "The catalog does not answer",
}

const saidAway = "Our database does not answer at the moment. Pages that were read a short while ago still work: try this one again in a minute."

// fail answers with the page of a problem; shown is nil for a path that
// nobody has.
func (s *Site) fail(w http.ResponseWriter, r *http.Request, shown *shown, err error) {
	var moved movedTo
	if errors.As(err, &moved) {
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, string(moved), http.StatusFound) // it may come back
		return
	}
	if r.Context().Err() != nil {
		return // nobody waits for it
	}
	said := problem.Of(err)
	w.Header().Set("Cache-Control", "no-store")
	if !strings.Contains(r.Header.Get("Accept"), "text/html") && shown == nil {
		problem.Write(w, said)
		return
	}
	data := trouble{Title: titles[said.Code], Text: said.Message}
	if data.Title == "" {
		data.Title = http.StatusText(said.Code.Status())
	}
	switch status := said.Code.Status(); {
	case said.Code == problem.NotFound:
		data.Nearest = s.nearest(s.withVisitor(r), r.URL.Path, shown)
	case said.Code == problem.TooMany:
		w.Header().Set("Retry-After", "2")
	case status == http.StatusServiceUnavailable:
		data.Text = saidAway
		w.Header().Set("Retry-After", "60")
		fallthrough
	case status >= http.StatusInternalServerError:
		data.RequestID = problem.RequestID(r.Context())
		cause := said.Cause
		if cause == nil {
			cause = err
		}
		s.Log.ErrorContext(r.Context(), "a page could not be shown", "path", r.URL.Path, "cause", cause, "request_id", data.RequestID)
	}
	if err := templates.Write(w, said.Code.Status(), "trouble", s.content(r.URL.Path, data)); err != nil {
		s.Log.ErrorContext(r.Context(), "the page of a problem is wrong", "cause", err, "request_id", problem.RequestID(r.Context()))
		problem.Write(w, said)
	}
}

const mostSuggestions = 5

// nearest are the pages whose names are most like the one that was asked for.
func (s *Site) nearest(ctx context.Context, asked string, shown *shown) []suggestion {
	byName := map[string]suggestion{}
	if shown != nil && strings.Contains(shown.path, "{slug}") {
		s.catalogNames(ctx, path.Base(asked), path.Dir(asked), byName)
	} else {
		for _, path := range append([]string{"/tools", "/comparatifs", "/categories", "/cimetiere"}, s.Others...) {
			byName[strings.Trim(path, "/")] = suggestion{path, path}
		}
	}
	var found []suggestion
	for _, name := range near.Names(strings.Trim(path.Base(asked), "/"), keys(byName), mostSuggestions) {
		found = append(found, byName[name])
	}
	return found
}

func keys(of map[string]suggestion) []string {
	var all []string
	for key := range of {
		all = append(all, key)
	}
	return all
}

type named struct {
	Items []struct{ Slug, Name, Title string }
}

// catalogNames adds what the catalog has that could have been meant in a list.
func (s *Site) catalogNames(ctx context.Context, slug, list string, into map[string]suggestion) {
	done, err := s.slots.take(ctx)
	if err != nil {
		return // others need the time more
	}
	defer done()
	answer := s.Executor.Execute(ctx, graph.Request{Operation: s.nearby, Variables: piecesOf(slug)})
	var found struct {
		Same                                              *struct{ Slug, Name string }
		Head, Tail, Start, End, RetiredTools, Comparisons named
	}
	if answer.Problem() != nil || json.Unmarshal(answer.Data, &found) != nil {
		return // the page says what it can without
	}
	add := func(path string, all named) {
		for _, item := range all.Items {
			into[item.Slug] = suggestion{path + "/" + item.Slug, item.Name + item.Title}
		}
	}
	if list == "/comparatifs" {
		add("/comparatifs", found.Comparisons)
		return
	}
	add("/cimetiere", found.RetiredTools)
	if found.Same != nil {
		into[found.Same.Slug] = suggestion{"/tools/" + found.Same.Slug, found.Same.Name}
	}
	for _, tools := range []named{found.Head, found.Tail, found.Start, found.End} {
		add("/tools", tools)
	}
}

// piecesOf a name are what a slip leaves of it: its first letters or its last
// ones. Few letters are in many names, so more of them are looked for, too.
func piecesOf(slug string) map[string]any {
	letters := []rune(strings.ReplaceAll(slug, "-", " "))
	letters = letters[:min(len(letters), longestText)]
	piece := func(of []rune) string { return strings.TrimSpace(string(of)) }
	few, more := min(2, len(letters)), min(5, len(letters))
	return map[string]any{
		"slug": strings.Join(strings.Fields(fold.Text(string(letters))), "-"),
		"head": piece(letters[:few]), "tail": piece(letters[len(letters)-few:]),
		"start": piece(letters[:more]), "end": piece(letters[len(letters)-more:]),
	}
}
