package portal

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"time"

	"palmares/internal/problem"
)

//go:embed assets
var assetFiles embed.FS

// asset is a file under a name that changes with what is in it, so that
// browsers may keep it for ever.
type asset struct {
	address, kind string
	data          []byte
}

// assetTypes are the same on every machine.
var assetTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// assets are found by the name they have here, and by the one they are served
// under.
var assets, assetsServed = func() (byName, served map[string]asset) {
	byName, served = map[string]asset{}, map[string]asset{}
	files, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, file := range files {
		data, err := assetFiles.ReadFile(path.Join("assets", file.Name()))
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(data)
		extension := path.Ext(file.Name())
		name := strings.TrimSuffix(file.Name(), extension) + "-" + hex.EncodeToString(sum[:6]) + extension
		one := asset{"/assets/" + name, assetTypes[extension], data}
		byName[file.Name()], served[name] = one, one
	}
	return byName, served
}()

// assetPath is where a file is served. A template that names none is wrong.
func assetPath(name string) string {
	found, known := assets[name]
	if !known {
		panic("no asset " + name)
	}
	return found.address
}

func serveAsset(w http.ResponseWriter, r *http.Request) {
	found, known := assetsServed[r.PathValue("name")]
	if !known {
		problem.Write(w, problem.New(problem.NotFound, "There is no such file."))
		return
	}
	w.Header().Set("Content-Type", found.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(found.data))
}
