package problem_test

import (
	"net/http"
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
		refuse := func(w http.ResponseWriter, r *http.Request) { problem.Refuse(w, r, problem.New(c.code, "No.")) }
		for client, handler := range map[string]http.Handler{"REST": http.HandlerFunc(refuse), "GraphQL": problem.ForGraphQL(http.HandlerFunc(refuse))} {
			w := httptest.NewRecorder()
			header := w.Header()
			header.Set("Link", `</api/v1/tools?page=2>; rel="next"`)
			header.Add("Link", deprecation)
			header.Set("Cache-Status", "palmares; hit")
			if c.vary != "" {
				header.Set("Vary", c.vary)
			}
			handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			check.Slices(t, header.Values("Link"), []string{c.link, deprecation}, "%s for %s: Link", c.code, client)
			check.Equal(t, header.Get("Vary"), c.want, "%s for %s: %v", c.code, client, header)
			check.Equal(t, header.Get("Cache-Status"), "", "%s for %s: %v", c.code, client, header)
		}
	}
}
