package middleware

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

func TestRequestLogLine(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/tools":           "/api/v1/tools",
		`/"quoted"\`:              `/"quoted"\`,
		"/caf%C3%A9/%0a%00":       "/café/\n\x00",
		"/x/pal_0123456789abcdef": "/x/pal_…",
		"/oat_0123456789abcdef/ort_0123456789abcdef": "/oat_…/ort_…",
		"/q/qt_0123456789ABCDEF":                     "/q/qt_…",
		"/x?q=secret":                                "/x",
	} {
		var out bytes.Buffer
		lines := NewLogBuffer(&out)
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("four")) })
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r = r.WithContext(problem.WithRequestID(r.Context(), "R1"))
		var observed Observed
		Log(slog.New(slog.NewJSONHandler(lines, nil)), func(o Observed) { observed = o })(handler).ServeHTTP(httptest.NewRecorder(), r)
		lines.Flush()
		var fields map[string]any
		if err := json.Unmarshal(out.Bytes(), &fields); err != nil {
			t.Fatalf("got %v for %s, want valid JSON", err, out.String())
		}
		if fields["time"] == nil || fields["took"] != float64(observed.Took) || observed.Status != 200 {
			t.Errorf("got %s, want a time and the duration of %+v", out.String(), observed)
		}
		delete(fields, "time")
		delete(fields, "took")
		for name, value := range map[string]any{"level": "INFO", "msg": "request", "method": "GET", "path": want, "status": 200.0, "bytes": 4.0, "request_id": "R1"} {
			check.Equal(t, fields[name], value, "%s: %s", path, name)
			delete(fields, name)
		}
		check.Equal(t, len(fields), 0, "additional fields %v", fields)
	}
}
