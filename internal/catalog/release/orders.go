package release

import (
	"iter"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode"
)

// Order is an order of tools: by a field, then by slug.
type Order struct {
	field      string
	descending bool
}

// Orders that the program uses itself.
var (
	ByScore      = Order{"score", true}
	ByRetirement = Order{"retired", true} // of retired tools
)

// orders yields the orders of active tools.
func orders() iter.Seq[Order] {
	return func(yield func(Order) bool) {
		for name, f := range fields {
			if f.sorted && (!f.highest && !yield(Order{name, false}) || !yield(Order{name, true})) {
				return
			}
		}
	}
}

// OrderNamed returns an order of active tools by its name in the schema, such as
// monthly_price_asc.
func OrderNamed(name string) (Order, bool) {
	for o := range orders() {
		if o.String() == name {
			return o, true
		}
	}
	return Order{}, false
}

// String returns the name of the order in the schema.
func (o Order) String() string {
	if o.descending {
		return enumName(o.field) + "_desc"
	}
	return enumName(o.field) + "_asc"
}

// SplitOrder returns the name and the direction of an order of the schema, such as
// count_desc.
func SplitOrder(name string) (of string, descending bool) {
	of, descending = strings.CutSuffix(name, "_desc")
	return strings.TrimSuffix(of, "_asc"), descending
}

// enumName returns a name as enums of the schema spell it: billing_period for
// billingPeriod.
func enumName(name string) string {
	var spelled strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			spelled.WriteByte('_')
		}
		spelled.WriteRune(unicode.ToLower(r))
	}
	return spelled.String()
}

func (o Order) ofActive() bool { return o != ByRetirement }

// of returns the place of a tool in the order of the field.
func (f field) of(t *Tool) Place {
	if f.number == nil {
		return Place{Text: f.text(t), Slug: t.Slug}
	}
	if n := f.number(t); !math.IsNaN(n) {
		return Place{Number: n, Slug: t.Slug}
	}
	return Place{Missing: true, Slug: t.Slug}
}

// Comparer returns a function that compares two tools.
func (o Order) Comparer() func(a, b *Tool) int {
	f := fields[o.field]
	return func(a, b *Tool) int { return f.of(a).compare(f.of(b), o.descending) }
}

// Places returns the places of tools in the order.
func (o Order) Places() Places[*Tool] { return Places[*Tool]{fields[o.field].of, o.descending} }

// sorted is a list of tools in an order, with their positions in the release.
type sorted struct {
	tools     []*Tool
	positions []int32
}

// Sorted returns the active tools in an order, or the retired ones by retirement.
func (r *Release) Sorted(o Order) []*Tool { return r.orders[o]().tools }

// Matching returns the tools of an order that satisfy a filter. Those within limits on
// the order's own field follow each other; other conditions are checked in the order in
// which tools lie in memory, which is several times as fast as in any other.
func (r *Release) Matching(o Order, filter Filter) []*Tool {
	all := r.orders[o]()
	var others Filter
	for _, c := range filter {
		if c.limits == o.field {
			all = all.within(c.matches, fields[o.field])
		} else {
			others = append(others, c)
		}
	}
	if others == nil {
		return all.tools
	}
	match, count := make([]bool, len(r.Tools)), 0
	for i, t := range r.Tools {
		if t.Active() == o.ofActive() && others.Matches(t) {
			match[i] = true
			count++
		}
	}
	found := make([]*Tool, 0, min(count, len(all.tools)))
	for i, position := range all.positions {
		if match[position] {
			found = append(found, all.tools[i])
		}
	}
	return found
}

// within returns the part of a list whose tools satisfy a limit on the field that it is
// ordered by. Missing values, at its end, satisfy none.
func (s sorted) within(limit func(*Tool) bool, f field) sorted {
	from := 0
	to := sort.Search(len(s.tools), func(i int) bool { return f.of(s.tools[i]).Missing })
	if to > 0 && limit(s.tools[0]) {
		to = sort.Search(to, func(i int) bool { return !limit(s.tools[i]) })
	} else {
		from = sort.Search(to, func(i int) bool { return limit(s.tools[i]) })
	}
	return sorted{s.tools[from:to], s.positions[from:to]}
}

// Key returns a function that returns a field's text, which tools are grouped by; nil
// if there is no such field. The name is that of an enum value in the schema.
func Key(name string) func(*Tool) string {
	for fieldName, f := range fields {
		if enumName(fieldName) == name {
			return f.text
		}
	}
	return nil
}

// Filter has conditions that tools satisfy; an empty one is satisfied by all.
type Filter []Condition

// Condition is a condition on tools.
type Condition struct {
	matches func(*Tool) bool
	limits  string // the field that it is an upper or lower limit of, if any
}

// Where returns a condition that is no limit of a field.
func Where(matches func(*Tool) bool) Condition { return Condition{matches: matches} }

// Matches reports whether a tool satisfies all conditions.
func (f Filter) Matches(t *Tool) bool {
	for i := range f {
		if !f[i].matches(t) {
			return false
		}
	}
	return true
}

// AtLeast and AtMost return the condition that a number has a lower or an upper limit.
func AtLeast(field string, least float64) Condition {
	number := fields[field].number
	return Condition{func(t *Tool) bool { return number(t) >= least }, field}
}

func AtMost(field string, most float64) Condition {
	number := fields[field].number
	return Condition{func(t *Tool) bool { return number(t) <= most }, field}
}

// Since and Before return the condition that a date has a lower or an upper limit.
func Since(field string, first string) Condition {
	text := fields[field].text
	return Condition{func(t *Tool) bool { return text(t) >= first }, field}
}

func Before(field string, end string) Condition {
	text := fields[field].text
	return Condition{func(t *Tool) bool { return text(t) < end }, field}
}

// OneOf returns the condition that a text is one of some values.
func OneOf[Text ~string](field string, values []Text) Condition {
	text := fields[field].text
	if len(values) < 10 { // faster than a set
		return Where(func(t *Tool) bool { return slices.Contains(values, Text(text(t))) })
	}
	set := make(map[Text]bool, len(values))
	for _, v := range values {
		set[v] = true
	}
	return Where(func(t *Tool) bool { return set[Text(text(t))] })
}
