package site

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/internal/cache"
	"palmares/internal/problem"
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
		if strings.TrimSpace(text) == "" {
			continue
		}
		value, wrong := readValue(definition, text)
		if wrong != nil {
			return nil, wrong
		}
		a.variables[name] = value
		if name != "slug" {
			a.values.Set(name, text)
		}
	}
	return a, nil
}

// readValue is a text as its variable's type has it.
func readValue(definition *ast.VariableDefinition, text string) (any, *problem.Problem) {
	name := definition.Variable
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || len(text) > longestText {
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
		if err != nil || n < 1 || n > mostPages {
			return nil, problem.New(problem.BadInput, "%s: is a number from 1 to %d.", name, mostPages)
		}
		return n, nil
	case definition.Type.Name() == "Float":
		n, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return nil, problem.New(problem.BadInput, "%s: is a number.", name)
		}
		return n, nil
	}
	return text, nil
}

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

// REST is the path of the API that tells the same. Where that takes a
// parameter of the same name, it gets it.
func (a *asked) REST() string {
	if strings.HasSuffix(a.rest, "/") {
		slug, _ := a.variables["slug"].(string)
		return a.rest + slug
	}
	values := url.Values{}
	for _, name := range []string{"category", "score_min", "reason", "page"} {
		if a.values.Has(name) {
			values.Set(name, a.values.Get(name))
		}
	}
	if sort := a.values.Get("sort"); slices.Contains(sortsOfREST, sort) {
		values.Set("sort", sort)
	}
	return address(a.rest, values)
}

var sortsOfREST = []string{"score_desc", "score_asc", "name_asc", "name_desc"}

func address(path string, values url.Values) string {
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}
