package site

import (
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

// asked is what an address asks for.
type asked struct {
	*shown
	here      string         // the path
	values    url.Values     // what was said, without what was left empty
	variables map[string]any // the same, as the operation takes it
}

const (
	mostPages   = 1_000_000
	longestText = 200
)

// read takes the operation's variables from the address. A form sends what
// nobody filled in, so an empty value says nothing.
func (s *shown) read(r *http.Request) (*asked, error) {
	a := &asked{shown: s, here: r.URL.Path, values: url.Values{}, variables: map[string]any{}}
	sent, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, problem.New(problem.BadInput, "The address holds a broken escape.")
	}
	for _, definition := range s.operation.Definition().VariableDefinitions {
		name, text := definition.Variable, sent.Get(definition.Variable)
		if name == "slug" {
			text = r.PathValue("slug")
		}
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		value, wrong := readValue(definition, text)
		if wrong != nil {
			return nil, wrong
		}
		if isPreset(definition, value) {
			continue // said or not, it is the same page
		}
		a.variables[name] = value
		if name != "slug" {
			a.values.Set(name, textOf(value))
		}
	}
	return a, nil
}

// isPreset tells whether a value is what the operation takes by itself.
func isPreset(definition *ast.VariableDefinition, value any) bool {
	return definition.DefaultValue != nil && definition.DefaultValue.Raw == textOf(value)
}

// textOf is the one way a value is written in an address.
func textOf(value any) string {
	if n, ok := value.(float64); ok {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

// readValue is a text as its variable's type has it.
func readValue(definition *ast.VariableDefinition, text string) (any, *problem.Problem) {
	name := definition.Variable
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || utf8.RuneCountInString(text) > longestText {
		return nil, problem.New(problem.BadInput, "%s: is no text of up to %d characters.", name, longestText)
	}
	switch enum := definition.Definition; {
	case enum != nil && enum.Kind == ast.Enum:
		values := namesOf(enum)
		if !slices.Contains(values, text) {
			return nil, problem.New(problem.BadInput, "%s: is one of %s.", name, strings.Join(values, ", "))
		}
	case definition.Type.Name() == "Int":
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > mostPages || text[0] == '+' {
			return nil, problem.New(problem.BadInput, "%s: is a number from 1 to %d.", name, mostPages)
		}
		return n, nil
	case definition.Type.Name() == "Float":
		n, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
		if err != nil || !decimal.MatchString(text) {
			return nil, problem.New(problem.BadInput, "%s: is a number.", name)
		}
		return n, nil
	}
	return text, nil
}

// decimal is a number as people write it, with a point or a comma.
var decimal = regexp.MustCompile(`^-?[0-9]{1,9}([.,][0-9]{1,9})?$`)

func namesOf(enum *ast.Definition) []string {
	var names []string
	for _, value := range enum.EnumValues {
		names = append(names, value.Name)
	}
	return names
}

// question is what is asked, in its one form.
func (a *asked) question() cache.Question {
	slug, _ := a.variables["slug"].(string)
	return cache.Question{Operation: "page " + a.name, Variables: slug + "?" + a.values.Encode()}
}

// Path is the page's, without what it was asked for.
func (a *asked) Path() string { return a.here }

// Said is what the address says of a variable.
func (a *asked) Said(name string) string { return a.values.Get(name) }

// With is the address of this page with another value; the list begins anew,
// unless that is the page's number. An empty value takes one away.
func (a *asked) With(name, value string) string {
	values := url.Values{}
	for key := range a.values {
		if key != "page" {
			values.Set(key, a.values.Get(key))
		}
	}
	values.Del(name)
	if value != "" {
		values.Set(name, value)
	}
	return address(a.here, values)
}

// REST is the path of the API that tells the same; "" where there is none, or
// none that can be asked so.
func (a *asked) REST() string {
	if strings.HasSuffix(a.rest, "/") {
		slug, _ := a.variables["slug"].(string)
		return a.rest + slug
	}
	for name := range a.values {
		sorted := name != "sort" || slices.Contains(sortsOfREST, a.values.Get(name))
		if !slices.Contains(namesInREST, name) || !sorted {
			return ""
		}
	}
	return address(a.rest, a.values)
}

// namesInREST are the variables that REST has under the same name, and its
// lists are as long as ours.
var namesInREST = []string{"category", "score_min", "reason", "page", "sort"}

var sortsOfREST = []string{"score_desc", "score_asc", "name_asc", "name_desc"}

func address(path string, values url.Values) string {
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}
