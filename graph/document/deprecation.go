package document

import (
	"fmt"
	"regexp"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
)

// Deprecation holds the dates on which something was deprecated and will be removed.
// It is nil for anything that is not deprecated.
type Deprecation struct {
	Since  time.Time
	Sunset time.Time // zero if undecided
}

// ParseDeprecation parses two dates in the form YYYY-MM-DD. It returns nil if both
// are empty; only the second may be empty otherwise.
func ParseDeprecation(since, sunset string) (*Deprecation, error) {
	if since == "" && sunset == "" {
		return nil, nil
	}
	d := &Deprecation{}
	var err error
	if d.Since, err = time.Parse(time.DateOnly, since); err != nil {
		return nil, fmt.Errorf("deprecated: %w", err)
	}
	if sunset == "" {
		return d, nil
	}
	if d.Sunset, err = time.Parse(time.DateOnly, sunset); err == nil && d.Sunset.Before(d.Since) {
		err = fmt.Errorf("%s is before the deprecation", sunset)
	}
	if err != nil {
		return nil, fmt.Errorf("sunset: %w", err)
	}
	return d, nil
}

// String returns a sentence for the documentation, or "".
func (d *Deprecation) String() string {
	switch {
	case d == nil:
		return ""
	case d.Sunset.IsZero():
		return "Deprecated since " + d.Since.Format(time.DateOnly) + "."
	}
	return "Deprecated since " + d.Since.Format(time.DateOnly) +
		", to be removed on " + d.Sunset.Format(time.DateOnly) + "."
}

// Earliest returns the earlier dates of two deprecations.
func (d *Deprecation) Earliest(other *Deprecation) *Deprecation {
	if d == nil || other == nil {
		if d == nil {
			return other
		}
		return d
	}
	both := *d
	if other.Since.Before(both.Since) {
		both.Since = other.Since
	}
	if both.Sunset.IsZero() || !other.Sunset.IsZero() && other.Sunset.Before(both.Sunset) {
		both.Sunset = other.Sunset
	}
	return &both
}

var reasonDates = regexp.MustCompile(`Deprecated since ([0-9-]+)(?:, to be removed on ([0-9-]+))?\.`)

// DeprecationOf returns the deprecation of a field: the dates at the end of the
// reason in @deprecated, as in "Use `b`. Deprecated since 2026-11-16, to be
// removed on 2027-06-30." It returns nil without dates. A test checks the dates in
// the schema.
func DeprecationOf(field *ast.FieldDefinition) *Deprecation {
	directive := field.Directives.ForName("deprecated")
	if directive == nil {
		return nil
	}
	reason := directive.Arguments.ForName("reason")
	if reason == nil {
		return nil
	}
	dates := reasonDates.FindStringSubmatch(reason.Value.Raw)
	if dates == nil {
		return nil
	}
	d, err := ParseDeprecation(dates[1], dates[2])
	if err != nil {
		return nil
	}
	return d
}

// EarliestDeprecation returns the earliest deprecation of the fields that a valid
// operation selects.
func EarliestDeprecation(op *ast.OperationDefinition) (found *Deprecation) {
	seen := map[*ast.FragmentDefinition]bool{} // each fragment is visited only once
	var walk func(ast.SelectionSet)
	walk = func(set ast.SelectionSet) {
		for _, selection := range set {
			switch s := selection.(type) {
			case *ast.Field:
				found = found.Earliest(DeprecationOf(s.Definition))
				walk(s.SelectionSet)
			case *ast.InlineFragment:
				walk(s.SelectionSet)
			case *ast.FragmentSpread:
				if !seen[s.Definition] {
					seen[s.Definition] = true
					walk(s.Definition.SelectionSet)
				}
			}
		}
	}
	walk(op.SelectionSet)
	return found
}
