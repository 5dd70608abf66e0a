package saved_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"palmares/auth"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit/wait"
)

// A download token gives access to downloads of lists, at the expense of its owner's
// quota, and to nothing else.
func TestDownloadTokens(t *testing.T) {
	each(t, func(t *testing.T, s *service) {
		accounts, owner := auth.NewAccounts(s.Store), s.owner(t, ana)
		token, err := accounts.CreateDownloadToken(t.Context(), owner, "sheet")
		check.OK(t, err)
		left := func(r got) int {
			n, _ := strconv.Atoi(r.Header.Get("X-Ratelimit-Remaining"))
			return n
		}

		before := left(s.get(t, "/api/v1/stats", s.as(ana)...))
		for _, path := range []string{
			"/api/v1/tools?format=csv&token=" + token, "/api/v1/tools?token=" + token + "&format=ndjson", "/api/v1/pricing?format=csv&dialect=excel&token=" + token,
			"/api/v1/comparatifs.csv?token=" + token, "/api/v1/tools.ndjson?token=" + token, "/api/v1/cimetiere?format=csv&token=" + token, "/api/v1/categories?format=csv&token=" + token,
		} {
			r := s.get(t, path).want(t, 200, "slug")
			if before--; left(r) != before || r.Header.Get("X-Unknown-Parameters") != "" || r.Header.Get("X-Ratelimit-Tier") != "free" || r.Header.Get("Cdn-Cache-Control") != "private, no-store" {
				t.Errorf("%s: got %v, want the owner's quota with %d left, and a private response", path, r.Header, before)
			}
			for name, values := range r.Header {
				if strings.Contains(fmt.Sprint(values), token) {
					t.Errorf("%s: got the token in %s %v, want it nowhere", path, name, values)
				}
			}
		}
		r := s.get(t, "/api/v1/tools?format=csv&token="+token)
		s.get(t, "/api/v1/tools?format=csv&token="+token, "If-None-Match", r.Header.Get("Etag")).want(t, 304, "")
		// A key takes precedence.
		check.Equal(t, left(s.get(t, "/api/v1/tools?format=csv&token="+token, s.as(bea)...).want(t, 200, "slug")), 999, "with another key: left")

		const elsewhere = "gives access only to files, downloads"
		secret, _ := s.save(t, ana, "secret", best, private)
		for path, want := range map[string]struct {
			status int
			part   string
		}{
			"/api/v1/tools?token=" + token:                                 {401, elsewhere},
			"/api/v1/tools/plume?format=csv&token=" + token:                {401, elsewhere},
			"/api/v1/stats?format=csv&token=" + token:                      {401, elsewhere},
			"/api/embeddings?token=" + token:                               {401, elsewhere},
			"/api/embeddings/plume?format=csv&token=" + token:              {401, elsewhere},
			"/graphql?query=%7Bstats%7BtoolsTotal%7D%7D&token=" + token:    {401, elsewhere},
			"/mcp?token=" + token:                                          {401, elsewhere},
			secret + ".csv?token=" + token:                                 {404, "no saved query"},
			"/q/palmares/growth.csv?token=" + token:                        {200, "period"},
			"/q/palmares/growth.csv?token=dt_AAAAAAAAAAAAAAAAAAAAAAAAAA":   {401, "does not exist or was revoked"},
			"/api/v1/tools?format=csv":                                     {401, "an API key"},
			"/api/v1/tools?format=csv&token=dt_":                           {401, "does not exist or was revoked"},
			"/api/v1/tools?format=csv&token=dt_AAAAAAAAAAAAAAAAAAAAAAAAAA": {401, "does not exist or was revoked"},
			"/api/v1/tools?format=csv&token=qt_" + token[3:]:               {401, "an API key"},
			"/api/v1/tools?format=csv&token=" + strings.ToLower(token):     {401, "does not exist or was revoked"},
			"/api/v1/tools?format=&token=" + token:                         {400, "format"},
			"/api/v1/openapi.json?token=" + token:                          {200, "openapi"},
			"/api/v1/tools?format=csv&token=" + token + "&limit=1":         {400, "limit"},
			"/api/v1/unknown?format=csv&token=" + token:                    {401, elsewhere},
		} {
			s.get(t, path).want(t, want.status, want.part)
		}
		for _, authorization := range []string{"Bearer " + token, "Basic " + base64.StdEncoding.EncodeToString([]byte(token+":"))} {
			s.get(t, "/api/v1/tools?format=csv", "Authorization", authorization).want(t, 401, "malformed")
		}

		list, err := accounts.DownloadTokens(t.Context(), owner)
		check.OK(t, err)
		check.OK(t, accounts.RevokeDownloadToken(t.Context(), owner, list[0].ID))
		wait.Until(t, "the token is revoked", func() bool {
			return s.get(t, "/api/v1/tools?format=csv&token="+token).StatusCode == http.StatusUnauthorized
		})
		if log := s.log.String(); strings.Contains(log, token) || !strings.Contains(log, "/api/v1/tools") {
			t.Errorf("got a log with the token, or without requests, want neither:\n%s", log)
		}
	})
}

// Thousands may share the address of a spreadsheet's server: what is answered from the cache
// does not count against it, unless it is asked for too often.
func TestSharedAddress(t *testing.T) {
	t.Parallel()
	s := onSQLite(t)
	path, _ := s.save(t, ana, "best", best)
	hidden, _ := s.save(t, ana, "hidden", best, private)
	token, err := s.other.SetToken(t.Context(), s.owner(t, ana), "hidden")
	check.OK(t, err)
	shared := []string{"X-Forwarded-For", "192.0.2.200"}
	for range 11 { // the first is executed, nine are free, and the last is too often
		s.get(t, path+".csv", shared...).want(t, 200, "slug")
	}
	s.Clock.Add(time.Second)
	s.get(t, path+".csv", shared...).want(t, 200, "slug")
	s.get(t, path+".json", shared...).want(t, 200, "slug") // not cached yet
	for range auth.Anonymous.Terms().DailyQuota - 3 {
		s.get(t, "/api/v1/stats", shared...).want(t, 200, "tools")
	}
	s.get(t, "/api/v1/stats", shared...).want(t, 429, "used up")
	s.get(t, path+".csv", shared...).want(t, 200, "slug") // still free
	// Others pay for each request.
	for _, want := range []string{"999", "998"} {
		check.Equal(t, s.get(t, path+".csv", s.as(bea)...).Header.Get("X-Ratelimit-Remaining"), want, "with a key")
	}
	for _, want := range []string{"999", "998"} {
		check.Equal(t, s.get(t, hidden+".csv?token="+token).want(t, 200, "slug").Header.Get("X-Ratelimit-Remaining"), want, "with a token")
	}
}
