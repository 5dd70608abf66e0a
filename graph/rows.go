package graph

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/predicate"
	"palmares/ent/tool"
)

// toolField finds the place of a column in a tool. Tools are most of what is
// read, and half of the time went into ent's way from a column to its field:
// here a row is scanned straight into place.
var toolField = map[string]func(*ent.Tool) any{
	tool.FieldID:              func(t *ent.Tool) any { return &t.ID },
	tool.FieldName:            func(t *ent.Tool) any { return &t.Name },
	tool.FieldNameKey:         func(t *ent.Tool) any { return &t.NameKey },
	tool.FieldCategorySlug:    func(t *ent.Tool) any { return &t.CategorySlug },
	tool.FieldScore:           func(t *ent.Tool) any { return &t.Score },
	tool.FieldUntested:        func(t *ent.Tool) any { return &t.Untested },
	tool.FieldDomain:          func(t *ent.Tool) any { return orEmpty{&t.Domain} },
	tool.FieldIcp:             func(t *ent.Tool) any { return orEmpty{(*string)(&t.Icp)} },
	tool.FieldPricing:         func(t *ent.Tool) any { return orEmpty{(*string)(&t.Pricing)} },
	tool.FieldPrice:           func(t *ent.Tool) any { return orEmpty{&t.Price} },
	tool.FieldPriceAmount:     func(t *ent.Tool) any { return orZeroed[float64]{&t.PriceAmount} },
	tool.FieldPricePeriod:     func(t *ent.Tool) any { return orEmpty{&t.PricePeriod} },
	tool.FieldVerifiability:   func(t *ent.Tool) any { return &t.Verifiability },
	tool.FieldObsolescence:    func(t *ent.Tool) any { return &t.Obsolescence },
	tool.FieldTagline:         func(t *ent.Tool) any { return orEmpty{&t.Tagline} },
	tool.FieldCanonicalURL:    func(t *ent.Tool) any { return orEmpty{&t.CanonicalURL} },
	tool.FieldAvisURL:         func(t *ent.Tool) any { return &t.AvisURL },
	tool.FieldAlternativesURL: func(t *ent.Tool) any { return orEmpty{&t.AlternativesURL} },
	tool.FieldUpdatedAt:       func(t *ent.Tool) any { return orEmpty{&t.UpdatedAt} },
	tool.FieldTier:            func(t *ent.Tool) any { return orZeroed[int]{&t.Tier} },
	tool.FieldMainstream:      func(t *ent.Tool) any { return &t.Mainstream },
	tool.FieldInEmbeddings:    func(t *ent.Tool) any { return &t.InEmbeddings },
	tool.FieldSectionsHash:    func(t *ent.Tool) any { return orEmpty{&t.SectionsHash} },
	tool.FieldRetiredReason:   func(t *ent.Tool) any { return orEmpty{(*string)(&t.RetiredReason)} },
	tool.FieldRetiredAt:       func(t *ent.Tool) any { return orEmpty{&t.RetiredAt} },
	tool.FieldRetiredNote:     func(t *ent.Tool) any { return orEmpty{&t.RetiredNote} },
}

// orEmpty reads a text that retired tools, or only they, may lack.
type orEmpty struct{ text *string }

// Scan is called by database/sql.
func (o orEmpty) Scan(value any) error {
	switch v := value.(type) {
	case string:
		*o.text = v
	case []byte:
		*o.text = string(v)
	case nil:
		*o.text = ""
	default:
		return fmt.Errorf("a text is stored as %T", value)
	}
	return nil
}

// orZeroed reads a number that retired tools may lack.
type orZeroed[N int | float64] struct{ number *N }

// Scan is called by database/sql.
func (o orZeroed[N]) Scan(value any) error {
	var number sql.Null[N]
	err := number.Scan(value)
	*o.number = number.V
	return err
}

// toolQuery is a question for rows of tools.
type toolQuery struct {
	columns       []string
	where         []predicate.Tool
	order         order
	limit, offset int // no limit if zero
	backward      bool
}

// at is the query for a numbered page.
func (q toolQuery) at(p numbered) toolQuery {
	q.order, q.limit, q.offset, q.backward = p.order, p.limit, p.offset, p.backward
	return q
}

// also is the query with further conditions.
func (q toolQuery) also(where ...predicate.Tool) toolQuery {
	q.where = slices.Concat(q.where, where)
	return q
}

// deep is an offset from which on stepping over rows costs more than reading
// the page by slug.
const deep = 500

// activeBySlug is asked so often that its statement is put together by hand.
func (r *reading) activeBySlug(ctx context.Context, columns []string, slug string) ([]*ent.Tool, error) {
	statement := "SELECT " + strings.Join(columns, ", ") + " FROM tools WHERE slug = $1 AND retired_at IS NULL"
	return r.scanTools(ctx, toolQuery{columns: columns, limit: 1}, statement, slug)
}

// toolRows reads tools, only the columns that are asked for.
func (r *reading) toolRows(ctx context.Context, q toolQuery) ([]*ent.Tool, error) {
	s := entsql.Dialect(r.catalog.Dialect()).Select(q.columns...).From(entsql.Table(tool.Table))
	for _, keep := range q.where {
		keep(s)
	}
	q.order.apply(s)
	if q.limit > 0 {
		s.Limit(q.limit).Offset(q.offset)
	}
	if q.offset > deep {
		// What is stepped over is looked up in the index alone.
		found := s.Select(tool.FieldID)
		s = entsql.Dialect(r.catalog.Dialect()).Select(q.columns...).From(entsql.Table(tool.Table))
		s.Where(entsql.In(s.C(tool.FieldID), found))
		q.order.apply(s)
	}
	statement, args := s.Query()
	return r.scanTools(ctx, q, statement, args...)
}

func (r *reading) scanTools(ctx context.Context, q toolQuery, statement string, args ...any) ([]*ent.Tool, error) {
	rows, err := r.catalog.Select(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var next ent.Tool
	fields := mapped(q.columns, func(column string) any { return toolField[column](&next) })
	found := make([]*ent.Tool, 0, q.limit)
	for rows.Next() {
		if err := rows.Scan(fields...); err != nil {
			return nil, err
		}
		row := next
		found = append(found, &row)
	}
	if q.backward {
		slices.Reverse(found)
	}
	return found, rows.Err()
}

// columnsFor lists what to read for a selection, each column once.
func columnsFor(s selection, also ...string) []string {
	columns := append([]string{tool.FieldID}, also...)
	for _, field := range s.fields() {
		columns = append(columns, toolColumns[field.Name]...)
	}
	slices.Sort(columns)
	return slices.Compact(columns)
}
