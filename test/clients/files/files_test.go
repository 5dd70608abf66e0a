// Package files_test downloads the files of releases from a server.
package files_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palmares/auth"
	"palmares/internal/catalog/files"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

type got struct {
	*http.Response
	body string
}

// get requests a path without following redirects.
func get(t testing.TB, s *blackbox.Server, method, path string, headers ...string) got {
	t.Helper()
	r := check.Try(http.NewRequestWithContext(t.Context(), method, "http://"+s.Address+path, nil)).OK(t)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response := check.Try(http.DefaultTransport.RoundTrip(r)).OK(t)
	defer response.Body.Close()
	body := check.Try(io.ReadAll(response.Body)).OK(t)
	return got{response, string(body)}
}

func (g got) want(t testing.TB, status int, part string) got {
	t.Helper()
	check.Equal(t, g.StatusCode, status, "%s %s", g.Request.Method, g.Request.URL)
	check.Contains(t, g.body, part, "%s %s", g.Request.Method, g.Request.URL)
	return g
}

type listing struct {
	Release int
	Files   []struct {
		Name, URL, SHA256 string
		Size, Rows        int64
	}
	Releases []struct{ Release int }
}

func TestFiles(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		s := blackbox.Serve(t, cfg, "--demo")
		const email = "ana@example.com"
		key := blackbox.CreateKey(t, cfg, email, "developer")
		bearer := []string{"Authorization", "Bearer " + key}

		var list listing
		wait.Until(t, "a list of files", func() bool { return get(t, s, "GET", "/files/").StatusCode == 200 })
		check.OK(t, json.Unmarshal([]byte(get(t, s, "GET", "/files/index.json").body), &list))
		check.MustTrue(t, list.Release == 8 && len(list.Files) == 9 && len(list.Releases) == 8 && list.Files[0].Name == "catalog.sqlite", "got %+v, want 9 files of release 8", list)
		left := func(g got) string { return g.Header.Get("X-Ratelimit-Remaining") }
		for i, f := range list.Files {
			path := strings.TrimPrefix(f.URL, "http://"+s.Address)
			g := get(t, s, "GET", path, bearer...).want(t, 200, "")
			sum := sha256.Sum256([]byte(g.body))
			if hex.EncodeToString(sum[:]) != f.SHA256 || int64(len(g.body)) != f.Size || g.ContentLength != f.Size || f.Rows == 0 ||
				g.Header.Get("Cache-Control") != "private, max-age=31536000, immutable" || g.Header.Get("X-Service-Release") != "8" || left(g) != []string{"999", "998", "997", "996", "995", "994", "993", "992", "991"}[i] {
				t.Errorf("%s: got %v, want what the list says", f.Name, g.Header)
			}
		}

		// Ranges are free, and change with the content.
		const tools = "/files/releases/8/tools.parquet"
		whole := get(t, s, "GET", tools, bearer...)
		tag := whole.Header.Get("Etag")
		with := func(more ...string) []string { return append(append([]string{}, bearer...), more...) }
		for _, c := range []struct {
			method, name, value string
			ifRange             string
			status              int
			body                string
		}{
			{"GET", "Range", "bytes=0-3", "", 206, "PAR1"},
			{"GET", "Range", "bytes=-4", tag, 206, "PAR1"},
			{"GET", "Range", "bytes=0-3", `"other"`, 200, whole.body},
			{"GET", "Range", "bytes=99999999-", "", 416, `{"error":"Range is malformed or outside the file. A HEAD request returns the file's size."}`},
			{"GET", "If-Match", `"other"`, "", 412, `{"error":"The file has another ETag than If-Match requires."}`},
			{"GET", "If-None-Match", tag, "", 304, ""},
			{"HEAD", "Range", "bytes=0-3", "", 206, ""},
		} {
			headers := with(c.name, c.value)
			if c.ifRange != "" {
				headers = append(headers, "If-Range", c.ifRange)
			}
			if g := get(t, s, c.method, tools, headers...); g.StatusCode != c.status || g.body != c.body || left(g) != "991" {
				t.Errorf("%v: got %d %.40q with %s left, want %d and 991", c, g.StatusCode, g.body, left(g), c.status)
			}
		}
		check.True(t, strings.HasPrefix(tag, fmt.Sprintf(`"%d-`, files.Format)), "got the tag %s, want the version of the format in it", tag)

		// A key, HTTP Basic or a download token; before the redirect, too.
		accounts := auth.NewAccounts(testkit.Open(t, cfg))
		owner := check.Try(accounts.Find(t.Context(), email)).OK(t)
		token := check.Try(accounts.CreateDownloadToken(t.Context(), owner, "sheet")).OK(t)
		for _, path := range []string{tools, "/files/latest/tools.parquet", tools + "?token=dt_AAAAAAAAAAAAAAAAAAAAAAAAAA"} {
			get(t, s, "GET", path).want(t, 401, "error")
			get(t, s, "GET", path, "Authorization", "Bearer pal_wrong").want(t, 401, "error")
		}
		request, _ := http.NewRequest(http.MethodGet, "/", nil)
		request.SetBasicAuth(key, "")
		get(t, s, "GET", tools, "Authorization", request.Header.Get("Authorization")).want(t, 200, "PAR1")
		get(t, s, "GET", tools+"?token="+token).want(t, 200, "PAR1")
		for query, want := range map[string]string{"": tools, "?token=" + token: tools + "?token=" + token} {
			headers := bearer
			if query != "" {
				headers = nil
			}
			if g := get(t, s, "GET", "/files/latest/tools.parquet"+query, headers...).want(t, 302, ""); g.Header.Get("Location") != want || left(g) != "" {
				t.Errorf("got a redirect to %s with %s left, want %s", g.Header.Get("Location"), left(g), want)
			}
		}

		created := check.Try(accounts.DownloadTokens(t.Context(), owner)).OK(t)
		check.OK(t, accounts.RevokeDownloadToken(t.Context(), owner, created[0].ID))
		wait.Until(t, "the token is refused", func() bool { return get(t, s, "GET", tools+"?token="+token).StatusCode == 401 })
		get(t, s, "GET", "/files/latest/tools.parquet?token="+token).want(t, 401, "revoked")

		// Earlier editions, pages and what does not exist.
		get(t, s, "GET", "/files/releases/2/history.parquet", bearer...).want(t, 200, "PAR1")
		for path, status := range map[string]int{
			"/files/releases/9/tools.parquet": 404, "/files/releases/08/tools.parquet": 404, "/files/releases/8/../8/tools.parquet": 404,
			"/files/releases/8/index.json": 404, "/files/releases/8/": 404, "/files/latest/other": 404, "/files/nothing": 404,
		} {
			get(t, s, "GET", path, bearer...).want(t, status, "error")
		}
		get(t, s, "POST", tools, bearer...).want(t, 405, "error")
		french := get(t, s, "GET", "/files/", "Accept", "text/html", "Accept-Language", "fr")
		if french.want(t, 302, ""); french.Header.Get("Location") != "/fr/files" {
			t.Errorf("got %s, want the page in the visitor's language", french.Header.Get("Location"))
		}
		get(t, s, "GET", "/fr/files/").want(t, 301, "")
		for _, language := range []string{"en", "fr"} {
			get(t, s, "GET", "/"+language+"/files").want(t, 200, list.Files[1].SHA256)
		}
		get(t, s, "GET", "/fr/files").want(t, 200, "Le catalogue en fichiers")

		// The same files on the command line.
		folder := t.TempDir()
		blackbox.MustRun(t, blackbox.Command(t, cfg, "export", "--format", "parquet", folder))
		if data, err := os.ReadFile(filepath.Join(folder, "tools.parquet")); err != nil || string(data) != whole.body {
			t.Errorf("got %d bytes and %v from the command line, want the file of the server", len(data), err)
		}
		database := filepath.Join(folder, "release-3.sqlite")
		blackbox.MustRun(t, blackbox.Command(t, cfg, "export", "--format", "sqlite", "--as-of", "3", database))
		if data, err := os.ReadFile(database); err != nil || !strings.HasPrefix(string(data), "SQLite format 3") {
			t.Errorf("got %d bytes and %v, want a database", len(data), err)
		}

		blackbox.MustRun(t, blackbox.Command(t, cfg, "history", "prune", "--before", "4", "--yes"))
		wait.Until(t, "pruned files", func() bool {
			return get(t, s, "GET", "/files/releases/2/history.parquet", bearer...).StatusCode == 410
		})
		wait.Until(t, "files after pruning", func() bool { return get(t, s, "GET", tools, bearer...).StatusCode == 200 })
	})
}

// While the files cannot be written, everything else works.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	cfg := blackbox.Demo(t)
	cmd := blackbox.Command(t, cfg, "serve", "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "PALMARES_FILES="+testkit.SmallDisk(t, 64<<10))
	s := blackbox.ServeCommand(t, cmd)
	key := blackbox.NewKey(t, cfg, "developer")
	get(t, s, "GET", "/files/latest/catalog.sqlite", "Authorization", "Bearer "+key).want(t, 302, "")
	get(t, s, "GET", "/files/releases/1/catalog.sqlite", "Authorization", "Bearer "+key).want(t, 503, "cannot be provided at the moment")
	get(t, s, "GET", "/en/files").want(t, 200, "not available yet")
	get(t, s, "GET", "/readyz").want(t, 200, "ready")
	get(t, s, "GET", "/api/v1/tools").want(t, 200, "plume")
}
