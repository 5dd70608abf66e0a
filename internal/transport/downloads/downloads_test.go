package downloads

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"palmares/auth"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/catalog/files"
	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/release"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/wait"
)

// A request that would have to wait for long is told when to try again.
func TestFilesBeingWritten(t *testing.T) {
	t.Parallel()
	s, log := testkit.Open(t, testkit.SQLite(t)), slog.New(slog.DiscardHandler)
	check.Try(publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(demo.Catalog())), publish.Options{})).OK(t)
	archive := files.NewArchive(s, t.TempDir(), 1<<30, log)
	t.Cleanup(archive.Close)
	h := &Handler{Archive: archive, Newest: release.NewCatalog(s, log, 1<<20, nil).Newest, Log: log, WaitTime: time.Nanosecond}
	get := func(path string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Key: "key", Plan: auth.Developer})))
		return w
	}
	w := get("/files/releases/1/tools.parquet")
	check.Equal(t, w.Code, 202, w.Header())
	check.Equal(t, w.Header().Get("Retry-After"), "5", w.Header())
	check.Equal(t, w.Header().Get("Cache-Control"), "no-store", w.Header())
	wait.Until(t, "the file", func() bool { return get("/files/releases/1/tools.parquet").Code == 200 })
	check.Equal(t, archive.Built.Load(), 1, "builds")
}

// Many small ranges cost as much as many requests, so their number is limited.
func TestRanges(t *testing.T) {
	t.Parallel()
	s, log := testkit.Open(t, testkit.SQLite(t)), slog.New(slog.DiscardHandler)
	check.Try(publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(demo.Catalog())), publish.Options{})).OK(t)
	archive := files.NewArchive(s, t.TempDir(), 1<<30, log)
	t.Cleanup(archive.Close)
	h := &Handler{Archive: archive, Newest: release.NewCatalog(s, log, 1<<20, nil).Newest, Log: log, WaitTime: time.Minute}
	for count, want := range map[int]int{1: 206, maxRanges: 206, maxRanges + 1: 400, 3_000: 400} {
		r, w := httptest.NewRequest(http.MethodGet, "/files/releases/1/tools.parquet", nil), httptest.NewRecorder()
		ranges := make([]string, count)
		for i := range ranges {
			ranges[i] = fmt.Sprintf("%d-%d", 4*i, 4*i)
		}
		r.Header.Set("Range", "bytes="+strings.Join(ranges, ","))
		h.ServeHTTP(w, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Account: 1, Key: "key", Plan: auth.Developer})))
		check.Equal(t, w.Code, want, "%d ranges", count)
	}
}

// FuzzPath checks that the path of a release's file has one spelling, that only paths of
// files count once a day, and that all of them require a key.
func FuzzPath(f *testing.F) {
	for _, path := range []string{ReleasesPath + "8/catalog.sqlite", ReleasesPath + "08/catalog.sqlite", ReleasesPath + "8/../9/tools.parquet", ReleasesPath + "-1/", LatestPath + "catalog.sqlite", "/files", ReleasesPath + "9999999999999999999/a"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		number, name, ok := split(path)
		check.True(t, !ok || path == ReleasesPath+strconv.Itoa(number)+"/"+name, "%q: got release %d and %q, want one spelling", path, number, name)
		counted := Counted(&http.Request{URL: &url.URL{Path: path}})
		file := ok && slices.Contains(files.Names(), name)
		check.True(t, (counted != "") == file && (!file || counted == path && !strings.Contains(name, "/")), "%q: got %q, want what is counted for a file", path, counted)
		check.True(t, !ok || RequiresKey(path), "%q: got a file without a key, want one with a key", path)
	})
}
