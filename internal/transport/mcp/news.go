package mcp

import (
	"cmp"
	"encoding/json"
	"slices"
)

// change is an item of whats_new.
type change struct {
	Type      string                     `json:"type"`
	Slug      *string                    `json:"slug"`
	Category  *string                    `json:"category"`
	Fields    []string                   `json:"fields"`
	Old       map[string]json.RawMessage `json:"old"`
	New       map[string]json.RawMessage `json:"new"`
	Release   int                        `json:"release"`
	Published string                     `json:"published_at"`
}

// shown are the fields of a new or retired tool that whats_new shows; updates show what
// changed, and price changes the prices.
var shown = map[string][]string{
	"tool_created":         {"name", "price", "score"},
	"tool_retired":         {"name", "reason", "retired_at"},
	"price_changed":        {"pricing", "price"},
	"comparatif_published": {"title", "winner"},
}

// importance ranks changes by what readers care about most.
func (c *change) importance() int {
	switch {
	case c.Type == "price_changed":
		return 0
	case slices.Contains(c.Fields, "score"):
		return 1
	case c.Type == "tool_created":
		return 2
	case c.Type == "tool_retired" || c.Type == "tool_removed":
		return 3
	}
	return 4
}

// arrangeNews puts the most important changes of a page first, and reduces their states
// to the values that readers look for.
func arrangeNews(body json.RawMessage) (json.RawMessage, error) {
	var page struct {
		Data     []*change       `json:"data"`
		Next     json.RawMessage `json:"next"`
		PageInfo json.RawMessage `json:"page_info"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, err
	}
	for _, c := range page.Data {
		names := c.Fields
		if len(names) == 0 {
			names = shown[c.Type]
		}
		for _, state := range []*map[string]json.RawMessage{&c.Old, &c.New} {
			reduced := map[string]json.RawMessage{}
			for _, name := range names {
				if value, has := (*state)[name]; has {
					reduced[name] = value
				}
			}
			if *state = reduced; len(reduced) == 0 {
				*state = nil
			}
		}
	}
	slices.SortStableFunc(page.Data, func(a, b *change) int { return cmp.Compare(a.importance(), b.importance()) })
	return json.Marshal(page)
}
