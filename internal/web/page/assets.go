package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

// AssetsPath is what the addresses of all assets begin with.
const AssetsPath = "/assets/"

//go:embed assets
var files embed.FS

// Assets are files under names that change with what is in them, so that
// browsers may keep them for ever.
type Assets struct {
	addresses map[string]string              // by the name that a file has here
	served    map[string]func() *cache.Entry // by the one it is served under
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
	a := &Assets{addresses: map[string]string{}, served: map[string]func() *cache.Entry{}}
	each(from, folder, func(file, extension string) {
		data := mustRead(from, path.Join(folder, file))
		sum := sha256.Sum256(data)
		name := strings.TrimSuffix(file, extension) + "-" + hex.EncodeToString(sum[:6]) + extension
		entry := newAsset(data, extension)
		a.addresses[file] = AssetsPath + name
		a.served[name] = func() *cache.Entry { return entry }
	})
	return a
}

// MustBuilt takes every file of a folder whose builder has put a hash into
// their names already, because they name each other. They are served below a
// folder of that name, and large: each is read when it is first asked for.
func MustBuilt(from fs.FS, folder, below string) *Assets {
	a := &Assets{addresses: map[string]string{}, served: map[string]func() *cache.Entry{}}
	each(from, folder, func(file, extension string) {
		name := path.Join(below, file)
		a.addresses[file] = AssetsPath + name
		a.served[name] = sync.OnceValue(func() *cache.Entry {
			return newAsset(mustRead(from, path.Join(folder, file)), extension)
		})
	})
	return a
}

// each goes through the files of a folder that can be served.
func each(from fs.FS, folder string, do func(file, extension string)) {
	found, err := fs.ReadDir(from, folder)
	if err != nil {
		panic(err) // it is embedded
	}
	for _, file := range found {
		if extension := path.Ext(file.Name()); assetTypes[extension] != "" {
			do(file.Name(), extension)
		}
	}
}

func mustRead(from fs.FS, name string) []byte {
	data, err := fs.ReadFile(from, name)
	if err != nil {
		panic(err) // it is embedded
	}
	return data
}

func newAsset(data []byte, extension string) *cache.Entry {
	return cache.NewEntry(data, http.Header{
		"Content-Type":  {assetTypes[extension]},
		"Cache-Control": {"public, max-age=31536000, immutable"},
		"Vary":          {"Accept-Encoding"},
	})
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
				if err := found().Write(w, r); err != nil {
					problem.Write(w, err)
				}
				return
			}
		}
		problem.Write(w, problem.New(problem.NotFound, "There is no such file."))
	})
}
