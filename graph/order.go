package graph

import (
	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/comparison"
	"palmares/ent/tool"
	"palmares/graph/model"
)

// order is a sequence of stored keys that ends in the slug, which breaks ties.
type order []orderKey

type orderKey struct {
	column string
	desc   bool
}

var toolOrders = map[model.ToolSort]order{
	model.ToolSortScoreDesc:   {{tool.FieldUntested, false}, {tool.FieldScore, true}, {tool.FieldID, false}},
	model.ToolSortScoreAsc:    {{tool.FieldUntested, false}, {tool.FieldScore, false}, {tool.FieldID, false}},
	model.ToolSortNameAsc:     {{tool.FieldNameKey, false}, {tool.FieldID, false}},
	model.ToolSortNameDesc:    {{tool.FieldNameKey, true}, {tool.FieldID, false}},
	model.ToolSortUpdatedDesc: {{tool.FieldUpdatedAt, true}, {tool.FieldID, false}},
	model.ToolSortUpdatedAsc:  {{tool.FieldUpdatedAt, false}, {tool.FieldID, false}},
	model.ToolSortPriceAsc:    {{tool.FieldPriceAmount, false}, {tool.FieldID, false}},
	model.ToolSortPriceDesc:   {{tool.FieldPriceAmount, true}, {tool.FieldID, false}},
}

var (
	comparisonOrder = order{{comparison.FieldUpdatedAt, true}, {comparison.FieldID, false}}
	retiredOrder    = order{{tool.FieldRetiredAt, true}, {tool.FieldID, false}}
)

// reversed is the same order from its other end.
func (o order) reversed() order {
	return mapped(o, func(k orderKey) orderKey { return orderKey{k.column, !k.desc} })
}

// narrowedBy reports whether a filter bounds what the order goes by.
func (o order) narrowedBy(filter *model.ToolFilter) bool {
	switch o[len(o)-2].column {
	case tool.FieldScore:
		return filter.ScoreMin != nil || filter.ScoreMax != nil
	case tool.FieldUpdatedAt:
		return filter.UpdatedSince != nil
	case tool.FieldPriceAmount:
		return filter.PriceMax != nil
	}
	return false
}

// apply orders a query.
func (o order) apply(s *entsql.Selector) {
	for _, key := range o {
		column := s.C(key.column)
		if key.desc {
			s.OrderBy(entsql.Desc(column))
		} else {
			s.OrderBy(entsql.Asc(column))
		}
	}
}

// sql is the order as text, for the window of a category's tools.
func (o order) sql() string {
	text := ""
	for i, key := range o {
		if i > 0 {
			text += ", "
		}
		text += key.column
		if key.desc {
			text += " DESC"
		}
	}
	return text
}

// past keeps only what comes after a position in the order: greater in the
// first key, or equal in it and greater in the next, and so on. Nothing is
// compared with a null: only untested tools have one, and among them the slug
// alone decides.
func (o order) past(position []any) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		var either []*entsql.Predicate
		var equal []*entsql.Predicate
		for i, key := range o {
			column := s.C(key.column)
			if position[i] == nil {
				equal = append(equal, entsql.IsNull(column))
				continue
			}
			further := entsql.GT(column, position[i])
			if key.desc {
				further = entsql.LT(column, position[i])
			}
			either = append(either, entsql.And(append(append([]*entsql.Predicate{}, equal...), further)...))
			equal = append(equal, entsql.EQ(column, position[i]))
		}
		s.Where(entsql.Or(either...))
		if first := s.C(o[0].column); position[0] != nil { // it follows from the rest, and leads PostgreSQL to the place
			if o[0].desc {
				s.Where(entsql.LTE(first, position[0]))
			} else {
				s.Where(entsql.GTE(first, position[0]))
			}
		}
	}
}

// keysOfTool is a tool's position in an order.
func (o order) keysOfTool(row *ent.Tool) []any {
	return mapped(o, func(key orderKey) any {
		switch key.column {
		case tool.FieldUntested:
			return row.Untested
		case tool.FieldScore:
			if row.Score == nil {
				return nil
			}
			return *row.Score
		case tool.FieldNameKey:
			return row.NameKey
		case tool.FieldUpdatedAt:
			return row.UpdatedAt
		case tool.FieldPriceAmount:
			return row.PriceAmount
		case tool.FieldRetiredAt:
			return row.RetiredAt
		}
		return row.ID
	})
}

func (o order) columns() []string { return mapped(o, func(k orderKey) string { return k.column }) }
