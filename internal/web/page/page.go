// Package page provides what all HTML pages share: the layout and its style,
// static assets, error pages and security headers.
package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"

	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
)

//go:embed assets templates
var files embed.FS

// Service is the service that all pages belong to.
type Service struct {
	PublicURL, ServiceName, Credit string
	Contact                        string // email address or URL of the operator, or ""
	Publisher                      string // name, or ""
	Demo                           bool   // the catalog and its publisher are fictional
	Log                            *slog.Logger
	Plans                          Plans
}

// Plans are what callers of the API get without and with an account.
type Plans struct{ Anonymous, Developer, Pro Plan }

// Plan is what callers of the API get.
type Plan struct {
	MonthlyEuros         float64 // 0 if it is free
	DailyQuota           int     // requests; 0 means unlimited
	Keys, SavedQueries   int
	Streams              int // at the same time
	Downloads            bool
	Embeddings, Webhooks bool
	Uptime               int // target in percent; 0 means that there is none
}

// Requests returns the number of requests per day in English.
func (p Plan) Requests() string { return lang.English.Number(p.DailyQuota) }

// Content returns the layout of a page. Path has no language prefix.
func (s Service) Content(l lang.Language, path string, head Head, data any) Content {
	return Content{Language: l, Base: s.PublicURL, Service: s.ServiceName, Credit: s.Credit, Contact: s.Contact, Plans: s.Plans, Demo: s.Demo, Path: path, Head: head, Data: data}
}

// Secure reports whether the service is reached over https.
func (s Service) Secure() bool { return strings.HasPrefix(s.PublicURL, "https://") }

// Content is the data of the layout. Data belongs to the page within it.
type Content struct {
	Language        lang.Language
	Base            string // public URL of the service
	Service, Credit string
	Contact         string // email address of the operator, or ""
	Email           string // email address of the signed-in user, or ""
	Path            string // path of the page, without a language prefix
	Plans           Plans
	Demo            bool   // the catalog is fictional
	Query           string // parameters that belong to the page's URL, or ""
	Notice          string // confirms the previous action
	FormError       string // error in the submitted form
	FormField       string // name of the field that it is about, or ""
	Markdown        string // path of the Markdown version, or ""
	AsMarkdown      bool   // send the Markdown version
	Image           string // path of an image about the page, or "" for that of the service
	Feeds           []Feed // Atom feeds about what the page shows
	NoIndex         bool   // search engines leave the page out
	AsOf            *AsOf  // the release that the page shows if it was selected, or nil
	Head            Head
	Data            any

	Form    url.Values // what was sent, if a form has an error
	Account any        // of the signed-in user, for the pages about it
}

// Feed is an Atom feed.
type Feed struct{ Title, Path string }

// Head lists what a page needs in addition to the shared style.
type Head struct {
	Styles, Scripts []string // URLs
	Wide            bool     // use the full window width
}

// Address returns the path and query of the page in a language.
func (c Content) Address(l lang.Language) string {
	return WithQuery(LocalPath(l, c.Path), c.Query)
}

// WithQuery adds an encoded query to a path, unless it is empty.
func WithQuery(path, query string) string {
	if query == "" {
		return path
	}
	return path + "?" + query
}

// ExplorerURL opens a query in the explorer, with its variables as JSON, or "".
func ExplorerURL(text, variables string) string {
	query := url.Values{"query": {text}}
	if variables != "" {
		query.Set("variables", variables)
	}
	return "/explorer?" + query.Encode()
}

// Canonical returns the URL under which search engines find the page.
func (c Content) Canonical() string {
	if c.AsOf != nil {
		return c.Base + LocalPath(c.Language, c.AsOf.Current)
	}
	return c.Base + c.Address(c.Language)
}

// Localized reports whether the page exists in all languages.
func (c Content) Localized() bool { return isPage(c.Path) }

// Default returns the path and query for readers of any other language.
func (c Content) Default() string {
	if c.Path == "/" || isQuery(c.Path) {
		return c.Path // chooses by the browser's preference
	}
	return c.Address(lang.English)
}

// Locale returns the language with its territory, in the format of Open Graph.
func (c Content) Locale() string {
	if c.Language == lang.French {
		return "fr_FR"
	}
	return "en_US"
}

// Source returns the credit line with the punctuation of the page's language. Where
// pages show the line to copy, it is as the API has it.
func (c Content) Source() string {
	if c.Language == lang.French {
		return lang.Typeset(c.Credit)
	}
	return strings.Replace(c.Credit, " : ", ": ", 1)
}

// Languages returns all languages.
func (c Content) Languages() []lang.Language { return lang.All }

// AsOf is a release of the catalog that the visitor selected.
type AsOf struct {
	Release int
	Date    string // of the release
	Query   string // selects the release in links to other pages of the catalog
	Current string // path of the same page in the current catalog
}

// HTML is the Content-Type of pages.
const HTML = "text/html; charset=utf-8"

// CheckMethod returns an error for methods other than GET and HEAD.
func CheckMethod(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	w.Header().Set("Allow", "GET, HEAD")
	return problem.New(problem.WrongMethod, "The method %s is not allowed here. Use GET.", r.Method)
}

// Handler returns a handler for GET and HEAD. It sends errors as JSON, unless the
// client has disconnected, which would count as an error of the server.
func Handler(serve func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := CheckMethod(w, r)
		if err == nil {
			err = serve(w, r)
		}
		if err != nil && r.Context().Err() == nil {
			problem.Write(w, err)
		}
	}
}

// BasePolicy is the Content-Security-Policy of a page with our own style, script,
// images and requests only. FormPolicy also allows forms.
const (
	BasePolicy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; manifest-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"
	FormPolicy = BasePolicy + "; form-action 'self'"
)

// SetSecurityHeaders sets the security headers of a page.
func (s Service) SetSecurityHeaders(header http.Header, policy string) {
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Frame-Options", "DENY")
	header.Set("X-Content-Type-Options", "nosniff")
	// With no-referrer, forms would be posted with "Origin: null".
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	if s.Secure() {
		header.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// AssetsPath is the prefix of the paths of all assets.
const AssetsPath = "/assets/"

// Assets are static files. Their URLs contain a hash of the content, so browsers
// may cache them forever.
type Assets struct {
	urls    map[string]string              // by file name
	entries map[string]func() *cache.Entry // by path below AssetsPath
}

// SharedAssets are the assets of every page: style, icon and scripts.
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
