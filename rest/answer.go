package rest

import (
	"bytes"
	"context"
	"net/http"
	"strconv"

	"palmares/graph"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

const (
	cacheControl = "s-maxage=3600, stale-while-revalidate=86400"
	vary         = "Authorization, Accept-Encoding"
)

// answer runs a route's operation.
func (h *Handler) answer(ctx context.Context, e *endpoint, variables map[string]any) (entry *cache.Entry, release int, err error) {
	if slug, ok := variables["slug"].(string); ok && len(slug) > longestText {
		return nil, 0, problem.New(problem.NotFound, "%s", e.missing(cut(slug), whereabouts{}))
	}
	answer := h.executor.Execute(ctx, graph.Request{Operation: e.operation, Variables: variables})
	if p := answer.Problem(); p != nil {
		return nil, 0, p
	}
	body := bodyOf(answer.Data)
	if e.missing != nil && string(body) == "null" {
		return h.notFound(ctx, e, variables, answer.Release)
	}
	header := headers()
	if answer.UpdatedAt != "" {
		header["X-Service-Updated-At"] = []string{answer.UpdatedAt}
	} else {
		header["Cache-Control"] = []string{"no-store"} // nothing is published yet: that will not last
	}
	if e.counted {
		total := totalOf(answer.Data)
		header["X-Total-Count"] = []string{strconv.FormatInt(total, 10)}
		header["Link"] = []string{e.links(h.cfg.PublicURL, variables, total)}
	}
	return cache.NewEntry(body, header), answer.Release, nil
}

// headers are those of every good answer.
func headers() http.Header {
	return http.Header{
		"Content-Type":           {"application/json"},
		"Cache-Control":          {cacheControl},
		"Vary":                   {vary},
		"X-Content-Type-Options": {"nosniff"},
	}
}

// bodyOf is the part of an answer that is sent: the field body, which comes
// first and may be followed by count, or all of it.
func bodyOf(data []byte) []byte {
	body, ok := bytes.CutPrefix(data, []byte(`{"body":`))
	if !ok {
		return data
	}
	if i := bytes.LastIndex(body, []byte(`,"count":{"meta":`)); i >= 0 {
		return body[:i]
	}
	return body[:len(body)-1]
}

// totalOf reads the last "total" in an answer, which is the list's: a quote
// within a text is escaped, so it cannot be part of one.
func totalOf(data []byte) int64 {
	const key = `"total":`
	_, digits, _ := bytes.Cut(data[max(0, bytes.LastIndex(data, []byte(key))):], []byte(key))
	total, err := strconv.ParseInt(string(digits[:max(0, bytes.IndexAny(digits, ",}"))]), 10, 64)
	if err != nil {
		panic("a list's operation does not ask for its total")
	}
	return total
}
