package page

import (
	"mime"
	"strconv"
	"strings"
)

// WantsMarkdown reports whether an Accept header prefers Markdown to HTML.
// Wildcards never do, since browsers send them.
func WantsMarkdown(accept []string) bool {
	quality := map[string]float64{}
	for item := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		mediaType, params, err := mime.ParseMediaType(strings.TrimSpace(item))
		if err != nil {
			continue
		}
		q := 1.0
		if value, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(value, 64); err != nil || q < 0 || q > 1 {
				q = 0
			}
		}
		quality[mediaType] = q
	}
	markdown := quality["text/markdown"]
	return markdown > 0 && markdown >= quality["text/html"]
}
