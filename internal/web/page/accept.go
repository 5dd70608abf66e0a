package page

import (
	"mime"
	"strconv"
	"strings"
)

// WantsMarkdown tells whether a caller would rather read Markdown than a page.
// Only who names it does: browsers, which take anything, never do.
func WantsMarkdown(accept []string) bool {
	quality := map[string]float64{}
	for item := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		kind, params, err := mime.ParseMediaType(strings.TrimSpace(item))
		if err != nil {
			continue
		}
		q := 1.0
		if given, said := params["q"]; said {
			if q, err = strconv.ParseFloat(given, 64); err != nil || q < 0 || q > 1 {
				q = 0
			}
		}
		quality[kind] = q
	}
	markdown := quality["text/markdown"]
	// A wildcard is for what is not named, so it does not speak against it.
	return markdown > 0 && markdown >= quality["text/html"]
}
