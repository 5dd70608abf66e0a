package page

import (
	"bytes"
	"net/http"
	"net/url"
	pathpkg "path"
	"regexp"
	"slices"
	"strings"

	"palmares/internal/core/lang"
)

// Every page is at /en/… and /fr/…. The handlers and templates mention neither the
// prefix nor the English names of sections: Localize removes them from the path of a
// request, and Render and Redirect add them to links and redirects.

// nonPages are paths within a section that are not pages.
var nonPages = []string{"/docs.md", "/explorer/schema.graphql", "/explorer/cost", "/search/suggestions"}

// isPage reports whether there may be a page at a path without a prefix. Unclean
// paths keep their prefix until the mux has redirected to the clean one.
func isPage(path string) bool {
	if clean := pathpkg.Clean(path); clean != path && clean+"/" != path {
		return false
	}
	section, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return strings.HasPrefix(path, "/") && slices.Contains(sections, strings.TrimSuffix(section, MarkdownSuffix)) &&
		!slices.Contains(nonPages, path) && !strings.HasPrefix(path, "/files/") && !(isQuery(path) && strings.Contains(path, ".") && !imagePath.MatchString(path)) // data in some format
}

// imagePath matches the charts of saved queries as files, which have texts.
var imagePath = regexp.MustCompile(`^[^.]*(\.small)?\.(svg|png)$`)

// isQuery reports whether a path belongs to a saved query. Without a language, it is for
// programs too, and people get the language that their browser prefers.
func isQuery(path string) bool { return strings.HasPrefix(path, "/q/") }

// SplitLanguage splits the path of a page into its language and the path that
// handlers know. ok is false for all other paths.
func SplitLanguage(path string) (l lang.Language, rest string, ok bool) {
	l, rest = splitPrefix(path)
	return l, lang.French.Section(rest), l != "" && isPage(rest)
}

// splitPrefix returns "" for a path without the prefix of a language.
func splitPrefix(path string) (l lang.Language, rest string) {
	for _, l := range lang.All {
		if rest, found := strings.CutPrefix(path, "/"+string(l)+"/"); found {
			return l, "/" + rest
		}
	}
	return "", path
}

// LocalPath adds the prefix of a language to the path of a page, which may have a
// query. Other paths stay as they are.
func LocalPath(l lang.Language, target string) string {
	path, _, _ := strings.Cut(target, "?")
	path, _, _ = strings.Cut(path, "#")
	if !isPage(path) {
		return target
	}
	return l.Path(target)
}

// Redirect sends the visitor to another page in the same language.
func Redirect(w http.ResponseWriter, r *http.Request, target string, status int) {
	http.Redirect(w, r, LocalPath(lang.Of(r.Context()), target), status)
}

// Localize takes the language of a page from its path. It redirects old URLs
// without a language or with the name of a section in the other one, and visitors of
// the root to the language that their browser prefers.
func Localize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l, rest := splitPrefix(r.URL.Path)
		switch {
		case l != "":
			r = r.WithContext(lang.With(r.Context(), l))
			if rest == "/files/" { // without a language it is the list for programs
				redirectPermanently(w, r, l.Path("/files"))
				return
			}
			if isPage(rest) {
				if _, written := splitPrefix(r.URL.EscapedPath()); l.Section(written) != written {
					redirectPermanently(w, r, l.Path(written))
					return
				}
				address := *r.URL
				address.Path = lang.French.Section(rest)
				if raw, found := strings.CutPrefix(r.URL.RawPath, "/"+string(l)+"/"); found {
					address.RawPath = lang.French.Section("/" + raw)
				} else {
					address.RawPath = ""
				}
				r.URL = &address
			}
		case isLanguage(r.URL.Path):
			redirectPermanently(w, r, r.URL.Path+"/")
			return
		case r.URL.Path == "/":
			preferred := lang.Preferred(r.Header.Get("Accept-Language"))
			w.Header().Set("Vary", "Accept-Language")
			w.Header().Set("Cache-Control", "public, max-age=0")
			r = r.WithContext(lang.With(r.Context(), preferred))
			Redirect(w, r, r.URL.RequestURI(), http.StatusFound)
			return
		case isPage(r.URL.Path) && !isQuery(r.URL.Path):
			redirectPermanently(w, r, LocalPath(lang.English, r.URL.EscapedPath()))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLanguage(path string) bool {
	return slices.ContainsFunc(lang.All, func(l lang.Language) bool { return path == "/"+string(l) })
}

// redirectPermanently keeps the query, and the method of a form.
func redirectPermanently(w http.ResponseWriter, r *http.Request, path string) {
	status := http.StatusMovedPermanently
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		status = http.StatusPermanentRedirect
	}
	w.Header().Set("Cache-Control", "public, max-age=86400")
	if strings.HasPrefix(r.URL.Path, "/login") || strings.HasPrefix(r.URL.Path, "/account") {
		w.Header().Set("Cache-Control", "no-store") // the URL may contain a token
	}
	http.Redirect(w, r, (&url.URL{Opaque: path, RawQuery: r.URL.RawQuery}).String(), status)
}

// localLink finds links and forms that lead to this site. Quotes in texts are
// escaped, so it finds attributes only.
var localLink = regexp.MustCompile(` (?:href|action|formaction)="/[^"]*"`)

// localizeLinks adds the prefix of a language to the links of a page. Those that
// have one, such as to the other language, stay.
func localizeLinks(body []byte, l lang.Language) []byte {
	return localLink.ReplaceAllFunc(body, func(attribute []byte) []byte {
		start := bytes.IndexByte(attribute, '"') + 1
		target := string(attribute[start : len(attribute)-1])
		return append(append(slices.Clone(attribute[:start]), LocalPath(l, target)...), '"')
	})
}
