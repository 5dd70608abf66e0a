package timetravel_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"palmares/auth"
	"palmares/graph"
)

func newRecorder(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// executeNamed executes one operation of a document.
func executeNamed(t testing.TB, s *server, document, name string) string {
	t.Helper()
	got := s.executor.Execute(auth.WithCaller(t.Context(), developer), graph.Request{Query: document, OperationName: name})
	if len(got.Errors) > 0 {
		t.Fatal(got.Errors)
	}
	return string(got.Data)
}
