package graph

import (
	"strings"
	"unicode/utf8"

	"palmares/internal/core/problem"
)

const (
	maxPage        = 1_000_000
	maxNestedTools = 50 // tools of a category
	// maxSlugText is above where package params cuts a text, so that REST finds nothing by
	// a longer slug instead of rejecting it.
	maxSlugText = 500
)

// checkText rejects strings that are too long or that a database cannot compare.
func checkText(name, value string, maxLength int) error {
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

// argument is an optional string argument.
type argument struct {
	name  string
	value *string
}

// checkSlugs rejects strings that cannot be slugs.
func checkSlugs(arguments ...argument) error {
	for _, a := range arguments {
		if a.value == nil {
			continue
		}
		if err := checkText(a.name, *a.value, maxSlugText); err != nil {
			return err
		}
	}
	return nil
}
