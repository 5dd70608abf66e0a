// Package lang translates messages and formats numbers, dates and prices for people.
// Messages are written in English where they are used, and the English text is the
// key of its translation. API clients get English only.
package lang

import (
	"context"
	"fmt"
	"html/template"
	"strings"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Language is a language of the website and of emails.
type Language string

// The languages.
const (
	English Language = "en"
	French  Language = "fr"
)

// All lists the languages. The first is the default.
var All = []Language{English, French}

// Message is an English text or format string. A "|" separates singular and plural.
type Message string

var (
	tags     = map[Language]language.Tag{English: language.AmericanEnglish, French: language.French}
	printers = map[Language]*message.Printer{English: message.NewPrinter(tags[English]), French: message.NewPrinter(tags[French])}
	matcher  = language.NewMatcher([]language.Tag{language.English, language.French})
)

// Parse returns the language with a code, or the default if there is none.
func Parse(code string) Language {
	if code == string(French) {
		return French
	}
	return English
}

// Preferred returns the best language for an Accept-Language header.
func Preferred(header string) Language {
	if len(header) > 1000 { // longer than any browser sends
		return English
	}
	_, i := language.MatchStrings(matcher, header)
	return All[i]
}

// Name returns the name of the language in the language itself.
func (l Language) Name() string {
	if l == French {
		return "Français"
	}
	return "English"
}

type key struct{}

// With returns a context with the language of a request.
func With(ctx context.Context, l Language) context.Context { return context.WithValue(ctx, key{}, l) }

// Of returns the language of a request.
func Of(ctx context.Context) Language {
	if l, ok := Chosen(ctx); ok {
		return l
	}
	return English
}

// Chosen returns the language that the URL of a request names, if it names one.
func Chosen(ctx context.Context) (l Language, ok bool) {
	l, ok = ctx.Value(key{}).(Language)
	return l, ok
}

// translate returns a message in the language, or in English if it has no
// translation. A test checks that no translation is missing.
func (l Language) translate(m Message) string {
	if l == French {
		if text, ok := french()[m]; ok {
			return text
		}
	}
	return string(m)
}

// Text formats a message with its arguments. Numbers are formatted for the language.
func (l Language) Text(m Message, args ...any) string {
	text := l.translate(m)
	if len(args) == 0 {
		return text
	}
	formatted := make([]any, len(args))
	for i, arg := range args {
		switch value := arg.(type) {
		case Phrase:
			formatted[i] = l.Text(value.Message, value.Args...)
		case Date:
			formatted[i] = l.DayOf(string(value))
		default:
			formatted[i] = arg
		}
	}
	return l.printer().Sprintf(text, formatted...)
}

// Phrase is a message within another one. As an argument of Text it is translated
// too; elsewhere it is in English.
type Phrase struct {
	Message Message
	Args    []any
}

// NewPhrase returns a message with its arguments.
func NewPhrase(m Message, args ...any) Phrase { return Phrase{m, args} }

func (p Phrase) String() string { return fmt.Sprintf(string(p.Message), p.Args...) }

// Date is a date like "2026-07-07". Text formats it like DayOf; API clients get it
// unchanged.
type Date string

// Plural formats a message that has a singular and a plural. The count is its first
// argument, which either form may omit.
func (l Language) Plural(count int, m Message, args ...any) string {
	one, other, _ := strings.Cut(l.translate(m), "|")
	if plural.Cardinal.MatchPlural(tags[Parse(string(l))], count, 0, 0, 0, 0) == plural.One {
		other = one
	}
	if !strings.Contains(other, "%") {
		return other
	}
	return l.printer().Sprintf(other, append([]any{count}, args...)...)
}

// HTML formats a message that contains HTML. Arguments are escaped unless they
// are HTML themselves.
func (l Language) HTML(m Message, args ...any) template.HTML {
	escaped := make([]any, len(args))
	for i, arg := range args {
		switch value := arg.(type) {
		case template.HTML, int:
			escaped[i] = value
		default:
			escaped[i] = template.HTMLEscapeString(fmt.Sprint(value))
		}
	}
	return template.HTML(l.Text(m, escaped...)) //nolint:gosec // the message is ours, the arguments are escaped
}

func (l Language) printer() *message.Printer { return printers[Parse(string(l))] }

// names are the names of the site's sections in a language, by that in the other one.
var names = map[Language]map[string]string{
	English: {"comparatifs": "comparisons", "cimetiere": "graveyard"},
	French:  {"comparisons": "comparatifs", "graveyard": "cimetiere"}, // also those of the handlers
}

// Section replaces the section of a path, which may have a query, by its name in the
// language.
func (l Language) Section(path string) string {
	section, rest := strings.TrimPrefix(path, "/"), ""
	if end := strings.IndexAny(section, "/.?#"); end >= 0 {
		section, rest = section[:end], section[end:]
	}
	if name, ok := names[l][section]; ok {
		return "/" + name + rest
	}
	return path
}

// Path returns the path of a page in the language.
func (l Language) Path(path string) string {
	l = Parse(string(l))
	return "/" + string(l) + l.Section(path)
}
