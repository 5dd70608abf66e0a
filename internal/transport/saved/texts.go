package saved

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"palmares/ent"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

// presentation is what people see of a saved query besides its result. It belongs to the
// name: a version, which is only a text, has what its text suggests.
type presentation struct {
	title, description string
	chart              Chart
}

// presentationOf returns what the database stores. Queries that were saved before there
// were titles have none.
func presentationOf(row *ent.SavedQuery) presentation {
	p := presentation{title: cmp.Or(row.Title, words(row.Name)), description: row.Description}
	_ = json.Unmarshal([]byte(row.Chart), &p.chart) // it is empty if there is none
	return p
}

const (
	// MaxTitle is the maximum length of a title, in characters.
	MaxTitle = 100
	// MaxDescription is the maximum length of a description, in characters.
	MaxDescription = 500
)

func checkTitle(title string) error {
	if !params.IsText(title) || utf8.RuneCountInString(title) > MaxTitle || strings.ContainsFunc(title, unicode.IsControl) {
		return problem.New(problem.BadInput, "The title must be a single line of at most %d characters.", MaxTitle).For("title")
	}
	return nil
}

func checkDescription(text string) error {
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' }
	if !params.IsText(text) || utf8.RuneCountInString(text) > MaxDescription || strings.ContainsFunc(text, control) {
		return problem.New(problem.BadInput, "The description must have at most %d characters and no control characters.", MaxDescription).For("description")
	}
	return nil
}

// Draft is what the text of a query suggests for saving it.
type Draft struct {
	Name, Title, Description string
	Chart                    Chart
	Columns                  []Column // none if the result has no table
	// Parameters is the query string that sets the given variables.
	Parameters string
}

// Draft returns what a text suggests, or an error if it cannot be saved.
func (s *Queries) Draft(text string, variables map[string]any) (*Draft, error) {
	q, err := newQuery(s.Executor, text)
	if err != nil {
		return nil, err
	}
	p := q.present(text)
	return &Draft{
		Name: strings.ToLower(strings.ReplaceAll(words(q.operation.Definition().Name), " ", "-")), Title: p.title, Description: p.description,
		Chart: p.chart, Columns: q.columns(q.samples()), Parameters: params.Canonical(q.parameters, variables),
	}, nil
}

// present returns what a text suggests: the name of the operation as the title, or else
// the first line of the comment above it, whose other lines are the description.
func (q *query) present(text string) presentation {
	p := presentation{title: words(q.operation.Definition().Name), chart: q.suggestChart()}
	first, rest := Comment(text)
	if p.title == "" && checkTitle(first) == nil {
		p.title, first = first, ""
	}
	p.description = strings.TrimSpace(first + "\n" + rest)
	if checkTitle(p.title) != nil {
		p.title = ""
	}
	if checkDescription(p.description) != nil {
		p.description = ""
	}
	return p
}

// Comment returns the comment that a document starts with: its first line and the others.
func Comment(text string) (first, rest string) {
	var lines []string
	for line := range strings.Lines(text) {
		comment, isComment := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !isComment {
			break
		}
		lines = append(lines, strings.TrimSpace(comment))
	}
	first, rest, _ = strings.Cut(strings.Join(lines, "\n"), "\n")
	return first, strings.TrimSpace(rest)
}

var wordStart = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)

// words returns a name such as bestFreeTools or best-free-tools as words: Best free tools.
func words(name string) string {
	spaced := wordStart.ReplaceAllString(name, "$1$3 $2$4")
	all := strings.FieldsFunc(spaced, func(r rune) bool { return r == '-' || r == '_' || r == ' ' })
	for i, word := range all {
		switch isAcronym := len(word) > 1 && strings.ToUpper(word) == word; {
		case isAcronym:
		case i == 0:
			all[i] = strings.ToUpper(word[:1]) + strings.ToLower(word[1:])
		default:
			all[i] = strings.ToLower(word)
		}
	}
	return strings.Join(all, " ")
}
