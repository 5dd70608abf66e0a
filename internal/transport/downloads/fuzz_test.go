package downloads

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"palmares/internal/catalog/files"
)

// FuzzPath checks that the path of a release's file has one spelling, that only paths of
// files count once a day, and that all of them require a key.
func FuzzPath(f *testing.F) {
	for _, path := range []string{ReleasesPath + "8/catalog.sqlite", ReleasesPath + "08/catalog.sqlite", ReleasesPath + "8/../9/tools.parquet", ReleasesPath + "-1/", LatestPath + "catalog.sqlite", "/files", ReleasesPath + "9999999999999999999/a"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		number, name, ok := split(path)
		if ok && path != ReleasesPath+strconv.Itoa(number)+"/"+name {
			t.Errorf("%q: got release %d and %q, want one spelling", path, number, name)
		}
		counted := Counted(&http.Request{URL: &url.URL{Path: path}})
		if file := ok && slices.Contains(files.Names(), name); (counted != "") != file || file && (counted != path || strings.Contains(name, "/")) {
			t.Errorf("%q: got %q, want what is counted for a file", path, counted)
		}
		if ok && !RequiresKey(path) {
			t.Errorf("%q: got a file without a key, want one with a key", path)
		}
	})
}
