// Package negotiate reads Accept and Accept-Encoding headers (RFC 9110,
// section 12.5).
package negotiate

import (
	"iter"
	"strconv"
	"strings"
)

// Accepts returns the offered media type that an Accept header prefers, or ""
// if none is acceptable. Offers of equal quality are ranked by how specifically
// the header matches them, then by their order. Without a header, it returns the
// first offer.
func Accepts(accept []string, offers ...string) string {
	if strings.TrimSpace(strings.Join(accept, "")) == "" {
		return offers[0]
	}
	best, bestQuality, bestMatch := "", 0.0, noMatch
	for _, offer := range offers {
		q, m := quality(accept, offer)
		if q > bestQuality || q == bestQuality && q > 0 && m > bestMatch {
			best, bestQuality, bestMatch = offer, q, m
		}
	}
	return best
}

// Named returns the quality of a media type that an Accept header names explicitly,
// and 0 if at most a wildcard matches it.
func Named(accept []string, mediaType string) float64 {
	q, m := quality(accept, mediaType)
	if m != exactMatch {
		return 0
	}
	return q
}

// match is how specifically a media range matches a media type.
type match int

const (
	noMatch match = iota
	anyMatch
	typeMatch
	exactMatch
)

// quality returns the quality of the most specific matching range.
func quality(accept []string, mediaType string) (q float64, best match) {
	for item := range Items(accept) {
		if m := item.match(mediaType); m != noMatch && m >= best {
			q, best = item.Quality(0), m
		}
	}
	return q, best
}

// match ignores parameters, except for a charset other than UTF-8.
func (i Item) match(mediaType string) match {
	if charset, ok := i.param("charset"); ok && !strings.EqualFold(strings.Trim(charset, `"`), "utf-8") {
		return noMatch
	}
	main, _, _ := strings.Cut(mediaType, "/")
	switch i.Name {
	case mediaType:
		return exactMatch
	case main + "/*":
		return typeMatch
	case "*/*":
		return anyMatch
	}
	return noMatch
}

// Item is an element of a header, such as "gzip;q=0.5".
type Item struct {
	Name   string // in lower case
	params string
}

// Items returns the elements of a header in order.
func Items(headers []string) iter.Seq[Item] {
	return func(yield func(Item) bool) {
		for _, header := range headers {
			for element := range strings.SplitSeq(header, ",") {
				name, params, _ := strings.Cut(element, ";")
				if !yield(Item{strings.ToLower(strings.TrimSpace(name)), params}) {
					return
				}
			}
		}
	}
}

// Quality returns the item's weight from 0 to 1: by default 1, or the given value if
// the weight is malformed.
func (i Item) Quality(malformed float64) float64 {
	text, ok := i.param("q")
	if !ok {
		return 1
	}
	if q, err := strconv.ParseFloat(text, 64); err == nil && q >= 0 && q <= 1 {
		return q
	}
	return malformed
}

func (i Item) param(name string) (string, bool) {
	for param := range strings.SplitSeq(i.params, ";") {
		key, value, _ := strings.Cut(param, "=")
		if strings.EqualFold(strings.TrimSpace(key), name) {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}
