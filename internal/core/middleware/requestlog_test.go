package middleware

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"palmares/internal/core/problem"
)

// The line that is made by hand has what slog's own has.
func TestRequestLine(t *testing.T) {
	for _, path := range []string{"/api/v1/tools", `/"quoted"\`, "/caf%C3%A9/%0a%00", "/x/pal_0123456789abcdef"} {
		var byHand, bySlog bytes.Buffer
		lines := NewLines(&byHand)
		answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("four")) })
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r = r.WithContext(problem.WithRequestID(r.Context(), "R1"))
		Log(nil, lines)(answer).ServeHTTP(httptest.NewRecorder(), r)
		lines.Flush()
		Log(slog.New(slog.NewJSONHandler(&bySlog, nil)), nil)(answer).ServeHTTP(httptest.NewRecorder(), r)
		if got, want := decode(t, byHand.Bytes()), decode(t, bySlog.Bytes()); !reflect.DeepEqual(got, want) || got["bytes"] != 4.0 {
			t.Errorf("%v\nslog has %v", got, want)
		}
	}
}

// decode reads a line, but for what no two have alike.
func decode(t *testing.T, line []byte) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(line, &fields); err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	for _, name := range []string{"time", "took"} {
		if fields[name] == nil {
			t.Errorf("no %s in %s", name, line)
		}
		delete(fields, name)
	}
	return fields
}
