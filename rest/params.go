package rest

import (
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/internal/core/problem"
)

// parameter is a path or query parameter, and the operation's variable of the
// same name. Its type and default come from the operation.
type parameter struct {
	name        string
	description string
	min, max    int      // of an integer
	values      []string // of an enum; a row may allow fewer than the type has
	inPath      bool

	kind         string // Int, Float, String, or the name of an enum
	defaultValue any    // nil if there is none
}

// typed adds what the operation's variable declares.
func (p parameter) typed(variable *ast.VariableDefinition) parameter {
	p.kind = variable.Type.Name()
	if enum := variable.Definition; p.values == nil && enum != nil && enum.Kind == ast.Enum {
		for _, value := range enum.EnumValues {
			p.values = append(p.values, value.Name)
		}
	}
	if variable.DefaultValue != nil {
		p.defaultValue, _ = variable.DefaultValue.Value(nil)
	}
	return p
}

// readParameters turns a query string into an operation's variables. Unknown
// parameters are ignored, but must be valid text.
func readParameters(parameters []parameter, rawQuery string) (map[string]any, *problem.Problem) {
	variables := make(map[string]any, len(parameters))
	for pair := range strings.SplitSeq(rawQuery, "&") {
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(rawName)
		value, valueErr := url.QueryUnescape(rawValue)
		if nameErr != nil || valueErr != nil || !isText(name) || !isText(value) {
			return nil, problem.New(problem.BadInput, "The query string contains an invalid escape sequence, a NUL character or invalid UTF-8.")
		}
		i := slices.IndexFunc(parameters, func(p parameter) bool { return p.name == name && !p.inPath })
		if i < 0 {
			continue
		}
		if _, duplicate := variables[name]; duplicate {
			return nil, problem.New(problem.BadInput, "%s must be given only once.", name)
		}
		parsed, err := parameters[i].parse(value)
		if err != nil {
			return nil, err
		}
		variables[name] = parsed
	}
	for _, p := range parameters {
		if _, given := variables[p.name]; !given && p.defaultValue != nil {
			variables[p.name] = p.defaultValue
		}
	}
	return variables, nil
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

var (
	digits  = regexp.MustCompile(`^[0-9]+$`)
	decimal = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`) // as in JSON, plus leading zeros
)

// maxTextLength is longer than any slug.
const maxTextLength = 200

func (p parameter) parse(value string) (any, *problem.Problem) {
	switch {
	case p.values != nil:
		if !slices.Contains(p.values, value) {
			return nil, p.invalid(value, "one of "+strings.Join(p.values, ", "))
		}
		return value, nil
	case p.kind == "Int":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || !digits.MatchString(value) || n < int64(p.min) || n > int64(p.max) {
			return nil, p.invalid(value, "an integer from "+strconv.Itoa(p.min)+" to "+strconv.Itoa(p.max))
		}
		return n, nil
	case p.kind == "Float":
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || !decimal.MatchString(value) || math.IsInf(n, 0) {
			return nil, p.invalid(value, "a number")
		}
		return n + 0, nil // turns -0 into 0
	}
	if value == "" {
		return nil, problem.New(problem.BadInput, "%s must not be empty.", p.name)
	}
	if runes := []rune(value); len(runes) > maxTextLength {
		value = string(runes[:maxTextLength+1]) // still matches nothing, and takes less memory
	}
	return value, nil
}

func (p parameter) invalid(given, allowed string) *problem.Problem {
	return problem.New(problem.BadInput, "%s must be %s (got %q).", p.name, allowed, truncate(given))
}

// truncate shortens a caller's text for use in a message.
func truncate(text string) string {
	const maxRunes = 64
	if runes := []rune(text); len(runes) > maxRunes {
		return string(runes[:maxRunes]) + "…"
	}
	return text
}

// canonicalQuery writes variables as a query string, with the parameters in
// the route's order and without defaults. Equal requests have equal ones.
func canonicalQuery(parameters []parameter, variables map[string]any) string {
	var pairs []string
	for _, p := range parameters {
		value, given := variables[p.name]
		if !given || p.inPath || value == p.defaultValue {
			continue
		}
		pairs = append(pairs, p.name+"="+url.QueryEscape(formatValue(value)))
	}
	return strings.Join(pairs, "&")
}

func formatValue(value any) string {
	switch v := value.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return value.(string)
}
