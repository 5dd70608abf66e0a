package rest

import (
	"maps"
	"strconv"
	"strings"
)

// links is the Link header of a page in a list: where the others are.
func (e *endpoint) links(base string, variables map[string]any, total int64) string {
	page, limit := variables["page"].(int64), variables["limit"].(int64)
	last := max(1, (total+limit-1)/limit)
	others := []struct {
		rel   string
		page  int64
		there bool
	}{
		{"first", 1, true},
		{"prev", min(page-1, last), page > 1},
		{"next", page + 1, page < last},
		{"last", last, true},
	}
	rest := maps.Clone(variables)
	delete(rest, "page") // which is always spelled out
	query := canonical(e.arguments, rest)
	if query != "" {
		query = "&" + query
	}
	var header strings.Builder
	for _, other := range others {
		if !other.there {
			continue
		}
		if header.Len() > 0 {
			header.WriteString(", ")
		}
		header.WriteString("<" + base + e.path + "?page=" + strconv.FormatInt(other.page, 10) + query)
		header.WriteString(`>; rel="` + other.rel + `"`)
	}
	return header.String()
}
