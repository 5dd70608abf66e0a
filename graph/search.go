package graph

import (
	"context"
	"fmt"

	"entgo.io/ent/dialect"

	"palmares/ent/predicate"
	"palmares/ent/tool"
	"palmares/graph/model"
	"palmares/internal/core/text"
)

// A search goes through the folded text of every tool, which no index orders.
// It does so once: what it finds is then read by slug, in any order and with
// any other filter. Where it finds too much for that, the first of any order
// are soon found without.

// mostFound is how many tools a search may find to be read by slug.
const mostFound = 500

// where turns a filter into predicates, a search among them.
func (r *reading) where(ctx context.Context, filter *model.ToolFilter) ([]predicate.Tool, error) {
	where, err := toolsWhere(filter)
	if err != nil {
		return nil, err
	}
	text := searched(filter)
	if text == "" {
		return where, nil
	}
	found, err := r.found(ctx, text)
	switch {
	case err != nil:
		return nil, err
	case len(found) > mostFound:
		return append(where, tool.SearchTextContains(text)), nil
	}
	return append(where, tool.IDIn(found...)), nil
}

// searched is the text that a filter searches for, as it is stored.
func searched(filter *model.ToolFilter) string {
	if filter == nil || filter.Search == nil {
		return ""
	}
	return text.Fold(*filter.Search)
}

// found lists the tools that a search finds, one more than can be read by slug
// at most.
func (r *reading) found(ctx context.Context, text string) ([]string, error) {
	if slugs, before := r.searches[text]; before {
		return slugs, nil
	}
	rows, err := r.catalog.Select(ctx, fmt.Sprintf("SELECT slug FROM %s LIMIT %d", r.searching(), mostFound+1), text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var slugs []string
	for rows.Next() {
		var slug string
		if err := rows.Scan(&slug); err != nil {
			return nil, err
		}
		slugs = append(slugs, slug)
	}
	if r.searches == nil {
		r.searches = map[string][]string{}
	}
	r.searches[text] = slugs
	return slugs, rows.Err()
}

// countFound counts everything that a search finds.
func (r *reading) countFound(ctx context.Context, text string) (n int, err error) {
	rows, err := r.catalog.Select(ctx, "SELECT count(*) FROM "+r.searching(), text)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&n); err != nil {
			return 0, err
		}
	}
	return n, rows.Err()
}

// searching goes through active tools. SQLite has to be told to look through
// the index of the texts alone, a tenth of the table.
func (r *reading) searching() string {
	if r.catalog.Dialect() == dialect.SQLite {
		return "tools INDEXED BY tools_by_search_text WHERE retired_at IS NULL AND instr(search_text, $1) > 0"
	}
	return "tools WHERE retired_at IS NULL AND strpos(search_text, $1) > 0"
}
