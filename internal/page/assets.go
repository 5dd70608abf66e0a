package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"palmares/internal/cache"
	"palmares/internal/problem"
)

// AssetsPath is what the addresses of all assets begin with.
const AssetsPath = "/assets/"

//go:embed assets
var files embed.FS

// Assets are files under names that change with what is in them, so that
// browsers may keep them for ever.
type Assets struct {
	addresses map[string]string       // by the name that a file has here
	served    map[string]*cache.Entry // by the one it is served under
}

// Own are the assets of every page: the style, the icon and the copy buttons.
var Own = MustAssets(files, "assets")

// assetTypes are the same on every machine.
var assetTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".svg":   "image/svg+xml",
	".ttf":   "font/ttf",
	".woff2": "font/woff2",
}

// MustAssets takes every file of an embedded folder whose kind is served.
func MustAssets(from fs.FS, folder string) *Assets {
	a := &Assets{addresses: map[string]string{}, served: map[string]*cache.Entry{}}
	found, err := fs.ReadDir(from, folder)
	if err != nil {
		panic(err) // it is embedded
	}
	for _, file := range found {
		extension := path.Ext(file.Name())
		kind := assetTypes[extension]
		if kind == "" {
			continue
		}
		data, err := fs.ReadFile(from, path.Join(folder, file.Name()))
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(data)
		name := strings.TrimSuffix(file.Name(), extension) + "-" + hex.EncodeToString(sum[:6]) + extension
		a.addresses[file.Name()] = AssetsPath + name
		a.served[name] = cache.NewEntry(data, http.Header{
			"Content-Type":  {kind},
			"Cache-Control": {"public, max-age=31536000, immutable"},
			"Vary":          {"Accept-Encoding"},
		})
	}
	return a
}

// Path is where a file is served. Whoever names one that is not there is wrong.
func (a *Assets) Path(name string) string {
	found, known := a.addresses[name]
	if !known {
		panic("no asset " + name)
	}
	return found
}

// Has tells whether a file is there.
func (a *Assets) Has(name string) bool { return a.addresses[name] != "" }

// ServeAssets answers with the file that a path names, of whichever of these
// has it.
func ServeAssets(all ...*Assets) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		name := strings.TrimPrefix(r.URL.Path, AssetsPath)
		for _, a := range all {
			if found, known := a.served[name]; known {
				if err := found.Write(w, r); err != nil {
					problem.Write(w, err)
				}
				return
			}
		}
		problem.Write(w, problem.New(problem.NotFound, "There is no such file."))
	})
}
