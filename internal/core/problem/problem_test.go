package problem_test

import (
	"net/http/httptest"
	"slices"
	"testing"

	"palmares/internal/core/problem"
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
			if got := header.Values("Link"); !slices.Equal(got, []string{c.link, deprecation}) {
				t.Errorf("%s at %s: got Link %q, want %s and that of the deprecation", c.code, path, got, c.link)
			}
			if header.Get("Vary") != c.want || header.Get("Cache-Status") != "" {
				t.Errorf("%s at %s: got %v, want Vary %q and no Cache-Status", c.code, path, header, c.want)
			}
		}
	}
}
