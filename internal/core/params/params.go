// Package params describes the parameters of REST paths and pages, and reads the
// variables of their GraphQL operations from a query string.
package params

import (
	"fmt"
	"math"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/core/text"
)

// Param is a query parameter and the variable that it sets.
type Param struct {
	Name     string
	Kind     string         // Int, Float, Boolean, Date, or anything else for a string
	Values   []string       // the values of an enum; nil for other types
	Min, Max int            // the range of an Int; Max is also the maximum length of a string
	Default  any            // used if the parameter is absent; nil for none
	Required bool           // the operation cannot be executed without it; Read does not check this
	Pattern  *regexp.Regexp // of a string; nil for any
	Form     string         // describes the pattern in error messages
	List     bool           // accepts several of Values, or at most Max texts, repeated or separated by commas
	Repeats  bool           // accepts several values, each in its own parameter
	Relative bool           // accepts relative dates
	// NoDefaultWith is another parameter; where it is given, this one has no default.
	NoDefaultWith string
}

// DefaultWith returns the default of a parameter, given the values of others; nil for
// none.
func (p Param) DefaultWith(values map[string]any) any {
	if _, given := values[p.NoDefaultWith]; given {
		return nil
	}
	return p.Default
}

// FromVariable returns the parameter for a variable of an operation.
func FromVariable(v *ast.VariableDefinition) Param {
	p := Param{Name: v.Variable, Kind: v.Type.Name(), Min: math.MinInt32, Max: math.MaxInt32}
	if v.Definition != nil && v.Definition.Kind == ast.Enum {
		for _, value := range v.Definition.EnumValues {
			p.Values = append(p.Values, value.Name)
		}
	}
	if v.DefaultValue != nil {
		p.Default, _ = v.DefaultValue.Value(nil)
	}
	p.Required = v.Type.NonNull && v.DefaultValue == nil
	return p
}

// Read returns the values that a query string sets, without defaults. It
// ignores other parameters. Integers are int64, lists []string, and those of
// parameters that repeat []any.
func Read(rawQuery string, params []Param) (map[string]any, error) {
	return read(rawQuery, params, false)
}

// ReadForm is Read for HTML forms: it ignores empty fields and spaces around values,
// accepts decimal commas, and uses the first of several values.
func ReadForm(rawQuery string, params []Param) (map[string]any, error) {
	return read(rawQuery, params, true)
}

func read(rawQuery string, params []Param, form bool) (map[string]any, error) {
	values := make(map[string]any, len(params))
	for pair := range strings.SplitSeq(rawQuery, "&") {
		if pair == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(rawName)
		text, err := url.QueryUnescape(rawValue)
		invalid := err != nil || !IsText(text)
		switch {
		case nameErr != nil || !IsText(name) || invalid && name == "":
			return nil, problem.New(problem.BadInput, "The query string contains an invalid escape, a NUL character or invalid UTF-8.")
		case invalid:
			return nil, problem.New(problem.BadInput, "%s contains an invalid escape, a NUL character or invalid UTF-8.", Truncate(name)).For(name)
		}
		i := slices.IndexFunc(params, func(p Param) bool { return p.Name == name })
		if i < 0 {
			continue
		}
		_, repeated := values[name]
		if params[i].List {
			values[name], err = params[i].add(values[name], text)
			if err != nil {
				return nil, problem.Of(err).For(name)
			}
			continue
		}
		if form {
			if text = strings.TrimSpace(text); text == "" || repeated && !params[i].Repeats {
				continue
			}
			if params[i].Kind == "Float" {
				text = strings.Replace(text, ",", ".", 1)
			}
		} else if repeated && !params[i].Repeats {
			return nil, problem.New(problem.BadInput, "%s must not be given more than once.", name).For(name)
		}
		value, err := params[i].Parse(text)
		if err != nil {
			return nil, problem.Of(err).For(name)
		}
		if params[i].Repeats {
			list, _ := values[name].([]any)
			value = append(list, value)
		}
		values[name] = value
	}
	return values, nil
}

// Unknown returns the first names in a query string that are no parameters, at most
// limit, in the order of their first use.
func Unknown(rawQuery string, params []Param, limit int) (names []string) {
	for pair := range strings.SplitSeq(rawQuery, "&") {
		rawName, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(rawName)
		if err != nil || name == "" || slices.Contains(names, name) ||
			slices.ContainsFunc(params, func(p Param) bool { return p.Name == name }) {
			continue
		}
		if names = append(names, name); len(names) == limit {
			break
		}
	}
	return names
}

// add adds comma-separated values to a list, which contains each value once, in the
// order of Values or, without them, of the alphabet.
func (p Param) add(list any, text string) (any, error) {
	known, _ := list.([]string)
	if p.Values == nil {
		one := p
		one.Max = 0
		for item := range strings.SplitSeq(text, ",") {
			value, err := one.Parse(item)
			if err != nil {
				return nil, err
			}
			known = append(known, value.(string))
		}
		slices.Sort(known)
		if known = slices.Compact(known); len(known) > p.Max {
			return nil, problem.New(problem.BadInput, "%s must have at most %d values (got %d).", p.Name, p.Max, len(known))
		}
		return known, nil
	}
	for value := range strings.SplitSeq(text, ",") {
		if !slices.Contains(p.Values, value) {
			return nil, p.invalid(lang.NewPhrase("one or more of %s", strings.Join(p.Values, ", ")), value)
		}
		known = append(known, value)
	}
	return slices.DeleteFunc(slices.Clone(p.Values), func(value string) bool { return !slices.Contains(known, value) }), nil
}

// IsText reports whether a database can store a string as text.
func IsText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// IsDay reports whether a text is an existing day in the form YYYY-MM-DD; there is no year 0.
func IsDay(text string) bool {
	day, err := time.Parse(time.DateOnly, text)
	return err == nil && day.Year() != 0
}

// CheckText rejects strings that are too long or that a database cannot compare.
func CheckText(name, value string, maxLength int) error {
	switch {
	case !utf8.ValidString(value):
		return problem.New(problem.BadInput, "%s must be valid UTF-8.", name)
	case strings.ContainsRune(value, 0):
		return problem.New(problem.BadInput, "%s must not contain NUL characters.", name)
	case utf8.RuneCountInString(value) > maxLength:
		return problem.New(problem.BadInput, string(tooLong), name, maxLength)
	}
	return nil
}

const tooLong lang.Message = "%s must have at most %d characters." // shown on pages too

// CheckSlug rejects strings that cannot be slugs. The limit is above where Parse cuts a
// text, so that REST finds nothing by a longer slug instead of rejecting it.
func CheckSlug(name, slug string) error { return CheckText(name, slug, 500) }

// MaxText is longer than any stored name, in characters.
const MaxText = 200

// decimal matches numbers as in JSON, but allows leading zeros.
var decimal = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// Parse returns a parameter's value: an int64, a float64, a bool or a string.
func (p Param) Parse(value string) (any, error) {
	switch {
	case p.Values != nil:
		if !slices.Contains(p.Values, value) {
			return nil, p.invalid(lang.NewPhrase("one of %s", strings.Join(p.Values, ", ")), value)
		}
	case p.Kind == "Int":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || strings.HasPrefix(value, "+") || n < int64(p.Min) || n > int64(p.Max) {
			return nil, p.invalid(integerRange(p.Min, p.Max), value)
		}
		return n, nil
	case p.Kind == "Float":
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || !decimal.MatchString(value) || math.IsInf(n, 0) {
			return nil, p.invalid(lang.NewPhrase("a decimal number, such as 7.5"), value)
		}
		return n + 0, nil // minus zero becomes zero
	case p.Kind == "Boolean":
		if value != "true" && value != "false" {
			return nil, p.invalid(lang.NewPhrase("true or false"), value)
		}
		return value == "true", nil
	case p.Relative && IsRelativeDate(value):
	case p.Relative:
		if day, err := time.Parse(time.DateOnly, value); err != nil || day.Year() == 0 {
			return nil, p.invalid(lang.NewPhrase("a valid date in the form YYYY-MM-DD, or one such as -30d, -6m, latest or previous"), value)
		}
	case p.Kind == "Date":
		if !IsDay(value) {
			return nil, p.invalid(lang.NewPhrase("a valid date in the form YYYY-MM-DD"), value)
		}
	case value == "":
		return nil, problem.New(problem.BadInput, "%s must not be empty.", p.Name)
	case p.Pattern != nil && !p.Pattern.MatchString(value):
		return nil, p.invalid(lang.NewPhrase(lang.Message(p.Form)), value)
	case p.Max > 0 && utf8.RuneCountInString(value) > p.Max:
		return nil, problem.New(problem.BadInput, string(tooLong), p.Name, p.Max)
	case p.Max > 0 && p.Max < math.MaxInt32: // it has its own limit
		return value, nil
	}
	// A longer string matches nothing, even after it is cut to one character more.
	return text.Truncate(value, MaxText+1), nil
}

func (p Param) invalid(want lang.Phrase, got string) error {
	return problem.New(problem.BadInput, "%s must be %s (got %q).", p.Name, want, Truncate(got))
}

// Truncate shortens a caller's value for use in a message.
func Truncate(value string) string {
	const maxQuoted = 64
	if short := text.Truncate(value, maxQuoted); len(short) < len(value) {
		return short + "…"
	}
	return value
}

// CheckRange returns an error unless a number is between two others, inclusive.
func CheckRange(name string, value, least, most int) error {
	if value < least || value > most {
		return problem.New(problem.BadInput, "%s must be %s (got %d).", name, integerRange(least, most), value)
	}
	return nil
}

func integerRange(least, most int) lang.Phrase {
	return lang.NewPhrase("an integer from %d to %d", least, most)
}

// Canonical writes values as a query string, in the order of the parameters and
// without defaults. Equal requests have equal query strings.
func Canonical(params []Param, values map[string]any) string {
	var pairs []string
	for _, p := range params {
		value := values[p.Name]
		if value == nil || reflect.DeepEqual(value, p.DefaultWith(values)) {
			continue
		}
		repeated, ok := value.([]any)
		if !ok {
			repeated = []any{value}
		}
		for _, one := range repeated {
			pairs = append(pairs, p.Name+"="+url.QueryEscape(Format(one)))
		}
	}
	return strings.Join(pairs, "&")
}

// Format formats a value for a canonical query string.
func Format(value any) string {
	if list, ok := value.([]string); ok {
		return strings.Join(list, ",")
	}
	if n, ok := value.(float64); ok {
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
	return fmt.Sprint(value)
}
