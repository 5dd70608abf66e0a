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

// argument is a parameter with the type that its operation gives it.
type argument struct {
	parameter
	kind   string   // Int, Float, String, or an enum's name
	values []string // of an enum
	preset any      // the operation's own default; nil for none
}

// argumentOf reads a parameter's type off the operation.
func argumentOf(p parameter, variable *ast.VariableDefinition) argument {
	a := argument{parameter: p, kind: variable.Type.Name(), values: p.values}
	if enum := variable.Definition; a.values == nil && enum != nil && enum.Kind == ast.Enum {
		for _, value := range enum.EnumValues {
			a.values = append(a.values, value.Name)
		}
	}
	if variable.DefaultValue != nil {
		a.preset, _ = variable.DefaultValue.Value(nil)
	}
	return a
}

// readArguments turns a query string into an operation's variables. What the
// path does not know is passed over, but must be text.
func readArguments(arguments []argument, rawQuery string) (map[string]any, *problem.Problem) {
	variables := make(map[string]any, len(arguments))
	for pair := range strings.SplitSeq(rawQuery, "&") {
		if pair == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, ok := unescape(rawName)
		value, also := unescape(rawValue)
		if !ok || !also {
			return nil, problem.New(problem.BadInput, "The query string holds a broken escape, a NUL, or what is not UTF-8.")
		}
		i := slices.IndexFunc(arguments, func(a argument) bool { return a.name == name && !a.inPath })
		if i < 0 {
			continue
		}
		if _, twice := variables[name]; twice {
			return nil, problem.New(problem.BadInput, "%s: is given twice, where once is allowed.", name)
		}
		read, wrong := arguments[i].read(value)
		if wrong != nil {
			return nil, wrong
		}
		variables[name] = read
	}
	for _, a := range arguments {
		if _, given := variables[a.name]; !given && a.preset != nil {
			variables[a.name] = a.preset
		}
	}
	return variables, nil
}

// unescape decodes a part of a query; false for what is no text.
func unescape(raw string) (string, bool) {
	text, err := url.QueryUnescape(raw)
	return text, err == nil && isText(text)
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// A number is written as JSON writes it, but that zeros may lead.
var decimal = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// read checks a value and gives it as the operation takes it.
func (a argument) read(value string) (any, *problem.Problem) {
	switch {
	case a.values != nil:
		if !slices.Contains(a.values, value) {
			return nil, a.wrong(value, "one of "+strings.Join(a.values, ", "))
		}
		return value, nil
	case a.kind == "Int":
		n, ok := wholeNumber(value)
		if !ok || n < int64(a.least) || n > int64(a.most) {
			return nil, a.wrong(value, "an integer from "+strconv.Itoa(a.least)+" to "+strconv.Itoa(a.most))
		}
		return n, nil
	case a.kind == "Float":
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || !decimal.MatchString(value) || math.IsInf(n, 0) {
			return nil, a.wrong(value, "a decimal number, such as 7.5")
		}
		return n + 0, nil // minus zero is zero
	}
	if value == "" {
		return nil, a.wrong(value, "a text")
	}
	if runes := []rune(value); len(runes) > longestText {
		value = string(runes[:longestText+1]) // still more than any has, so it matches nothing, too
	}
	return value, nil
}

// longestText is more than any slug has.
const longestText = 200

func wholeNumber(value string) (int64, bool) {
	for _, digit := range []byte(value) {
		if digit < '0' || digit > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return n, err == nil
}

const shownOfValue = 64

// wrong names the parameter, what was given and what is allowed.
func (a argument) wrong(given, allowed string) *problem.Problem {
	return problem.New(problem.BadInput, "%s: %q is not %s.", a.name, cut(given), allowed)
}

// cut is what a caller sent as it may stand in a sentence.
func cut(sent string) string {
	if runes := []rune(sent); len(runes) > shownOfValue {
		return string(runes[:shownOfValue]) + "…"
	}
	return sent
}

// canonical writes variables as the one query string that stands for them:
// parameters in the table's order, defaults left out.
func canonical(arguments []argument, variables map[string]any) string {
	var query strings.Builder
	for _, a := range arguments {
		value, given := variables[a.name]
		if !given || a.inPath || value == a.preset {
			continue
		}
		if query.Len() > 0 {
			query.WriteByte('&')
		}
		query.WriteString(a.name + "=" + url.QueryEscape(written(value)))
	}
	return query.String()
}

func written(value any) string {
	switch v := value.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return value.(string)
}
