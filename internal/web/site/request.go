package site

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

// request is a parsed request for a page.
type request struct {
	*route
	path      string
	query     url.Values     // normalized: no empty values, no defaults
	variables map[string]any // of the operation
}

const (
	maxPage       = 1_000_000
	maxTextLength = 200
)

// parse reads the operation's variables from the URL. Forms submit empty fields,
// so an empty value is the same as none.
func (rt *route) parse(r *http.Request) (*request, error) {
	req := &request{route: rt, path: r.URL.Path, query: url.Values{}, variables: map[string]any{}}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, problem.New(problem.BadInput, "The query string contains an invalid escape sequence.")
	}
	for _, definition := range rt.operation.Definition().VariableDefinitions {
		name, text := definition.Variable, query.Get(definition.Variable)
		if name == "slug" {
			text = r.PathValue("slug")
		}
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		value, err := parseValue(definition, text)
		if err != nil {
			return nil, err
		}
		if d := definition.DefaultValue; d != nil && d.Raw == formatValue(value) {
			continue
		}
		req.variables[name] = value
		if name != "slug" {
			req.query.Set(name, formatValue(value))
		}
	}
	return req, nil
}

func formatValue(value any) string {
	if n, ok := value.(float64); ok {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

// decimal accepts a comma too, as French visitors type it.
var decimal = regexp.MustCompile(`^-?[0-9]{1,9}([.,][0-9]{1,9})?$`)

func parseValue(definition *ast.VariableDefinition, text string) (any, error) {
	invalid := func(format string, args ...any) error {
		return problem.New(problem.BadInput, "`%s` must be %s.", definition.Variable, fmt.Sprintf(format, args...))
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || utf8.RuneCountInString(text) > maxTextLength {
		return nil, invalid("text of at most %d characters", maxTextLength)
	}
	switch enum := definition.Definition; {
	case enum != nil && enum.Kind == ast.Enum:
		if enum.EnumValues.ForName(text) == nil {
			var values []string
			for _, value := range enum.EnumValues {
				values = append(values, value.Name)
			}
			return nil, invalid("one of %s (got %q)", strings.Join(values, ", "), text)
		}
	case definition.Type.Name() == "Int":
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage || text[0] == '+' {
			return nil, invalid("an integer from 1 to %d (got %q)", maxPage, text)
		}
		return n, nil
	case definition.Type.Name() == "Float":
		n, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
		if err != nil || !decimal.MatchString(text) {
			return nil, invalid("a number (got %q)", text)
		}
		return n, nil
	}
	return text, nil
}

func (r *request) slug() string {
	slug, _ := r.variables["slug"].(string)
	return slug
}

func (r *request) cacheKey() cache.Question {
	return cache.Question{Operation: "page " + r.name, Variables: r.slug() + "?" + r.query.Encode()}
}

// Path returns the path of the page without its query.
func (r *request) Path() string { return r.path }

// Filtered reports whether the URL has any parameters.
func (r *request) Filtered() bool { return len(r.query) > 0 }

// Param returns a parameter of the URL, or "".
func (r *request) Param(name string) string { return r.query.Get(name) }

// PageURL returns the URL of another page of the list.
func (r *request) PageURL(page int) string {
	query := url.Values{"page": {strconv.Itoa(page)}}
	for name := range r.query {
		if name != "page" {
			query.Set(name, r.query.Get(name))
		}
	}
	return withQuery(r.path, query)
}

// REST has these parameters under the same names, and pages of the same length.
var (
	restParams = []string{"category", "score_min", "reason", "page", "sort"}
	restSorts  = []string{"score_desc", "score_asc", "name_asc", "name_desc"}
)

// restURL returns the equivalent request of the REST API, or "" if there is
// none.
func (r *request) restURL() string {
	if strings.HasSuffix(r.rest, "/") {
		return r.rest + r.slug()
	}
	for name := range r.query {
		if !slices.Contains(restParams, name) || name == "sort" && !slices.Contains(restSorts, r.query.Get(name)) {
			return ""
		}
	}
	return withQuery(r.rest, r.query)
}

// explorerURL opens the page's operation with its variables.
func (r *request) explorerURL() string {
	variables, err := json.Marshal(r.variables)
	if err != nil {
		panic(err) // strings and finite numbers can be marshaled
	}
	return explorerURL("query", r.operation.Text) + "&variables=" + url.QueryEscape(string(variables))
}

func explorerURL(param, value string) string {
	return "/explorer?" + param + "=" + url.QueryEscape(value)
}

func withQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}
