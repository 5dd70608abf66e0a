package problem_test

import (
	"net/http/httptest"
	"testing"

	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
)

func TestErrorHeaders(t *testing.T) {
	const deprecation = `</changelog>; rel="deprecation"; type="text/html"`
	for _, c := range []struct {
		code             problem.Code
		vary, link, want string // headers before, and Vary after
	}{
		{problem.NotFound, "", `</docs>; rel="help"`, ""},
		{problem.BadInput, "Accept", `</docs>; rel="help"`, "Accept"},
		{problem.Unauthenticated, "", `</guides/quotas>; rel="help"`, "Authorization"},
		{problem.QuotaSpent, "", `</guides/quotas>; rel="help"`, "Authorization"},
		{problem.QuotaSpent, "Authorization, Accept-Encoding", `</guides/quotas>; rel="help"`, "Authorization, Accept-Encoding"},
	} {
		for _, path := range []string{"/api/v1/tools", "/graphql"} {
			w := httptest.NewRecorder()
			header := w.Header()
			header.Set("Link", `</api/v1/tools?page=2>; rel="next"`)
			header.Add("Link", deprecation)
			header.Set("Cache-Status", "palmares; hit")
			if c.vary != "" {
				header.Set("Vary", c.vary)
			}
			problem.Refuse(w, httptest.NewRequest("GET", path, nil), problem.New(c.code, "No."))
			check.Slices(t, header.Values("Link"), []string{c.link, deprecation}, "%s at %s: Link", c.code, path)
			check.Equal(t, header.Get("Vary"), c.want, "%s at %s: %v", c.code, path, header)
			check.Equal(t, header.Get("Cache-Status"), "", "%s at %s: %v", c.code, path, header)
		}
	}
}
