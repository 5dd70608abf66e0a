package page

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

// AssetsPath is the prefix of the paths of all assets.
const AssetsPath = "/assets/"

// Assets are static files. Their URLs contain a hash of the content, so browsers
// may cache them forever.
type Assets struct {
	urls    map[string]string              // by file name
	entries map[string]func() *cache.Entry // by path below AssetsPath
}

// SharedAssets are the assets of every page: style, icon and copy buttons.
var SharedAssets = MustAssets(files, "assets")

// assetTypes is fixed because package mime depends on the machine.
var assetTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".svg":   "image/svg+xml",
	".ttf":   "font/ttf",
	".woff2": "font/woff2",
}

// MustAssets serves the files of an embedded folder under names with a hash.
func MustAssets(from fs.FS, folder string) *Assets {
	return newAssets(from, folder, func(file string) string {
		sum := sha256.Sum256(mustRead(from, path.Join(folder, file)))
		extension := path.Ext(file)
		return strings.TrimSuffix(file, extension) + "-" + hex.EncodeToString(sum[:6]) + extension
	})
}

// MustBuilt serves the files of an embedded folder under their own names, in the
// subfolder below. Their names contain a hash already, because they refer to
// each other. They are large, so each is read on its first request.
func MustBuilt(from fs.FS, folder, below string) *Assets {
	return newAssets(from, folder, func(file string) string { return path.Join(below, file) })
}

func newAssets(from fs.FS, folder string, rename func(file string) string) *Assets {
	a := &Assets{urls: map[string]string{}, entries: map[string]func() *cache.Entry{}}
	files, err := fs.ReadDir(from, folder)
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		contentType := assetTypes[path.Ext(file.Name())]
		if contentType == "" {
			continue
		}
		name := rename(file.Name())
		a.urls[file.Name()] = AssetsPath + name
		a.entries[name] = sync.OnceValue(func() *cache.Entry {
			return cache.NewEntry(mustRead(from, path.Join(folder, file.Name())), http.Header{
				"Content-Type":  {contentType},
				"Cache-Control": {"public, max-age=31536000, immutable"},
				"Vary":          {"Accept-Encoding"},
			})
		})
	}
	return a
}

func mustRead(from fs.FS, name string) []byte {
	data, err := fs.ReadFile(from, name)
	if err != nil {
		panic(err)
	}
	return data
}

// Path returns the URL path of a file. It panics if there is no such file.
func (a *Assets) Path(name string) string {
	url, ok := a.urls[name]
	if !ok {
		panic("no asset " + name)
	}
	return url
}

// ServeAssets serves the files of all given assets.
func ServeAssets(all ...*Assets) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		name := strings.TrimPrefix(r.URL.Path, AssetsPath)
		for _, a := range all {
			if entry, ok := a.entries[name]; ok {
				if err := entry().Write(w, r); err != nil {
					problem.Write(w, err)
				}
				return
			}
		}
		problem.Write(w, problem.New(problem.NotFound, "File not found."))
	})
}
