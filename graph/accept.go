package graph

import (
	"mime"
	"strconv"
	"strings"
)

const (
	mediaJSON     = "application/json"
	mediaResponse = "application/graphql-response+json"
	mediaStream   = "text/event-stream"
)

// wantsStream tells whether server-sent events are among what is accepted. A
// wildcard does not mean them.
func wantsStream(accept []string) bool {
	for item := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		name, params, err := mime.ParseMediaType(strings.TrimSpace(item))
		if err == nil && name == mediaStream && qualityOf(params) > 0 {
			return true
		}
	}
	return false
}

// negotiate picks the media type of the answer: the one with the highest
// quality, a type that is spelled out before a wildcard, and for old clients
// application/json where nothing is said.
func negotiate(accept []string) (media string, ok bool) {
	ranges := strings.Join(accept, ",")
	if strings.TrimSpace(ranges) == "" {
		return mediaJSON, true
	}
	named := map[string]float64{} // qualities of what is spelled out
	wildcard := 0.0
	for item := range strings.SplitSeq(ranges, ",") {
		name, params, err := mime.ParseMediaType(strings.TrimSpace(item))
		if err != nil {
			continue
		}
		if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
			continue
		}
		switch name {
		case mediaJSON, mediaResponse:
			named[name] = qualityOf(params)
		case "*/*", "application/*":
			wildcard = max(wildcard, qualityOf(params))
		}
	}
	best := 0.0
	consider := func(offered string, quality float64) {
		if quality > best {
			media, best = offered, quality
		}
	}
	// The order breaks ties.
	consider(mediaResponse, named[mediaResponse])
	consider(mediaJSON, named[mediaJSON])
	for _, offered := range []string{mediaJSON, mediaResponse} {
		if _, spelledOut := named[offered]; !spelledOut {
			consider(offered, wildcard)
		}
	}
	return media, media != ""
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
