package problem_test

import (
	"net/http"
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
			if got := header.Values("Link"); !slices.Equal(got, []string{c.link, deprecation}) {
				t.Errorf("%s for %s: got Link %q, want %s and that of the deprecation", c.code, client, got, c.link)
			}
			if header.Get("Vary") != c.want || header.Get("Cache-Status") != "" {
				t.Errorf("%s for %s: got %v, want Vary %q and no Cache-Status", c.code, client, header, c.want)
			}
		}
	}
}
