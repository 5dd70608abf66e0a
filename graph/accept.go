package graph

import (
	"mime"
	"strconv"
	"strings"
)

const (
	mediaJSON     = "application/json"
	mediaResponse = "application/graphql-response+json"
)

// negotiate picks the media type of the answer: the one with the highest
// quality, a type that is spelled out before a wildcard, and for old clients
// application/json where nothing is said.
func negotiate(accept []string) (media string, ok bool) {
	if len(accept) == 0 {
		return mediaJSON, true
	}
	bestQuality, bestExact := 0.0, false
	for item := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		name, params, err := mime.ParseMediaType(strings.TrimSpace(item))
		if err != nil {
			continue
		}
		if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
			continue
		}
		offered, exact := offer(name)
		quality := qualityOf(params)
		if offered == "" || quality == 0 {
			continue
		}
		if quality > bestQuality || (quality == bestQuality && exact && !bestExact) {
			media, bestQuality, bestExact = offered, quality, exact
		}
	}
	return media, media != ""
}

// offer is what we serve for a media range, or "".
func offer(name string) (media string, exact bool) {
	switch name {
	case mediaJSON, mediaResponse:
		return name, true
	case "*/*", "application/*":
		return mediaJSON, false
	}
	return "", false
}

func qualityOf(params map[string]string) float64 {
	q, given := params["q"]
	if !given {
		return 1
	}
	quality, err := strconv.ParseFloat(q, 64)
	if err != nil || quality < 0 || quality > 1 {
		return 0
	}
	return quality
}
