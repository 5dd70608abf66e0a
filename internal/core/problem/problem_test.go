package problem_test

import (
	"net/http/httptest"
	"testing"

	"palmares/internal/core/problem"
)

func TestErrorHeaders(t *testing.T) {
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
			header.Set("Cache-Status", "palmares; hit")
			if c.vary != "" {
				header.Set("Vary", c.vary)
			}
			problem.Refuse(w, httptest.NewRequest("GET", path, nil), problem.New(c.code, "No."))
			if got := header.Values("Link"); len(got) != 1 || got[0] != c.link {
				t.Errorf("%s at %s: got Link %q, want %s", c.code, path, got, c.link)
			}
			if header.Get("Vary") != c.want || header.Get("Cache-Status") != "" {
				t.Errorf("%s at %s: got %v, want Vary %q and no Cache-Status", c.code, path, header, c.want)
			}
		}
	}
}
