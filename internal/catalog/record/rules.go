package record

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
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// rule reads the values of a field and describes them.
type rule struct {
	// read sets a field to a JSON value, or reports what is wrong with it.
	read func(value jsontext.Value, into reflect.Value, report Reporter)
	// schema returns the JSON Schema of the values; nil for lists.
	schema func() map[string]any
}

// The rules for text, by the name that a rule tag has.
var textRules = map[string]rule{
	"text":    textRule(checkText, "type", "string"),
	"slug":    textRule(checkSlug, "type", "string"),
	"url":     textRule(checkURL, "type", "string"),
	"price":   textRule(checkPrice, "type", "string"),
	"date":    textRule(checkDate, "type", "string", "pattern", "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
	"icp":     oneOf("vibe-coder", "agentic-engineer", "mixte"),
	"pricing": oneOf("gratuit", "freemium", "payant"),
	"reason":  oneOf("mort", "acquis", "deprecie", "pivot", "absorbe"),
}

// newRule finds the rule for a Go type and a rule tag: one of textRules for
// text, a range such as 0..10 for numbers, none for booleans and lists. A
// pointer accepts null, too.
func newRule(t reflect.Type, tag string) (rule, error) {
	switch t.Kind() {
	case reflect.Pointer:
		inner, err := newRule(t.Elem(), tag)
		return orNull(t.Elem(), inner), err
	case reflect.String:
		if named, ok := textRules[tag]; ok {
			return named, nil
		}
	case reflect.Int, reflect.Float64:
		from, to, _ := strings.Cut(tag, "..")
		least, err := strconv.Atoi(from)
		most, err2 := strconv.Atoi(to)
		if err == nil && err2 == nil {
			return numberRule(t.Kind() == reflect.Int, least, most), nil
		}
	case reflect.Bool:
		return boolRule, nil
	case reflect.Slice:
		return listRule(t.Elem()), nil
	}
	return rule{}, fmt.Errorf("there is no rule %q for a %s", tag, t)
}

// textRule accepts text that passes a check. keywords are names and values of
// its JSON Schema.
func textRule(check func(string) (problem string), keywords ...any) rule {
	return rule{
		read: func(value jsontext.Value, into reflect.Value, report Reporter) {
			if value.Kind() != '"' {
				report("", "must be text (got "+kindName(value)+")")
				return
			}
			unquoted, err := jsontext.AppendUnquote(nil, value)
			if err != nil {
				report("", "is not valid text")
				return
			}
			if problem := check(string(unquoted)); problem != "" {
				report("", problem)
				return
			}
			into.SetString(string(unquoted))
		},
		schema: func() map[string]any {
			schema := map[string]any{}
			for pair := range slices.Chunk(keywords, 2) {
				schema[pair[0].(string)] = pair[1]
			}
			return schema
		},
	}
}

func oneOf(allowed ...string) rule {
	return textRule(func(s string) string {
		if !slices.Contains(allowed, s) {
			return fmt.Sprintf("must be one of %s (got %s)", strings.Join(allowed, ", "), Quote(s))
		}
		return ""
	}, "enum", allowed)
}

func numberRule(whole bool, least, most int) rule {
	return rule{
		read: func(value jsontext.Value, into reflect.Value, report Reporter) {
			number, _ := strconv.ParseFloat(string(value), 64) // a number too large is infinite, and out of range
			switch {
			case value.Kind() != '0':
				report("", "must be a number (got "+kindName(value)+")")
			case least == most && number != float64(least):
				report("", fmt.Sprintf("must be %d (got %s)", least, shorten(value)))
			case number < float64(least):
				report("", fmt.Sprintf("%s is under %d", shorten(value), least))
			case number > float64(most):
				report("", fmt.Sprintf("%s is over %d", shorten(value), most))
			case whole && number != math.Trunc(number):
				report("", "must be a whole number (got "+shorten(value)+")")
			case whole:
				into.SetInt(int64(number))
			default:
				into.SetFloat(number + 0) // turns -0 into 0
			}
		},
		schema: func() map[string]any {
			kind := "number"
			if whole {
				kind = "integer"
			}
			return map[string]any{"type": kind, "minimum": least, "maximum": most}
		},
	}
}

var boolRule = rule{
	read: func(value jsontext.Value, into reflect.Value, report Reporter) {
		if value.Kind() != 't' && value.Kind() != 'f' {
			report("", "must be true or false (got "+kindName(value)+")")
			return
		}
		into.SetBool(value.Kind() == 't')
	},
	schema: func() map[string]any { return map[string]any{"type": "boolean"} },
}

func orNull(t reflect.Type, inner rule) rule {
	return rule{
		read: func(value jsontext.Value, into reflect.Value, report Reporter) {
			if value.Kind() == 'n' {
				return
			}
			pointer := reflect.New(t)
			inner.read(value, pointer.Elem(), report)
			into.Set(pointer)
		},
		schema: func() map[string]any {
			return map[string]any{"anyOf": []any{inner.schema(), map[string]any{"type": "null"}}}
		},
	}
}

// listRule accepts a list of objects.
func listRule(element reflect.Type) rule {
	fields := newTable(element, nil)
	return rule{read: func(value jsontext.Value, into reflect.Value, report Reporter) {
		if value.Kind() != '[' {
			report("", "must be a list (got "+kindName(value)+")")
			return
		}
		dec := NewDecoder(value)
		_, _ = dec.ReadToken() // the bracket: value is valid JSON
		for i := 0; dec.PeekKind() != ']'; i++ {
			path := fmt.Sprintf("[%d]", i)
			if dec.PeekKind() != '{' {
				other, _ := dec.ReadValue()
				report(path, "must be an object (got "+kindName(other)+")")
				continue
			}
			_, _ = dec.ReadToken()
			item := reflect.New(element).Elem()
			_ = fields.read(dec, item, func(name, problem string) { report(path+"."+name, problem) })
			into.Set(reflect.Append(into, item))
		}
	}}
}

func checkText(s string) string {
	switch {
	case isBlank(s):
		return "must not be blank"
	case strings.ContainsRune(s, 0):
		return "must not contain a NUL character"
	}
	return ""
}

// isBlank reports whether a text has no visible character.
func isBlank(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) })
}

const maxSlug = 80

var slugForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func checkSlug(s string) string {
	switch {
	case s == "":
		return "must not be blank"
	case !slugForm.MatchString(s):
		return "must be words of a-z and 0-9 joined by single hyphens (got " + Quote(s) + ")"
	case len(s) > maxSlug:
		return fmt.Sprintf("must have at most %d characters (got %d in %s)", maxSlug, len(s), Quote(s))
	}
	return ""
}

func checkDate(s string) string {
	if _, err := time.Parse(time.DateOnly, s); err != nil {
		return "must be a calendar date as YYYY-MM-DD (got " + Quote(s) + ")"
	}
	return ""
}

func checkURL(s string) string {
	u, err := url.Parse(s)
	hidden := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) }
	if err == nil && u.Port() != "" {
		_, err = strconv.ParseUint(u.Port(), 10, 16)
	}
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || strings.ContainsFunc(s, hidden) {
		return "must be an absolute http or https URL (got " + Quote(s) + ")"
	}
	return ""
}

func checkPrice(s string) string {
	if _, _, ok := ParsePrice(s); !ok {
		return "must be <amount> €/<period>, such as 20 €/mois (got " + Quote(s) + ")"
	}
	return checkText(s)
}

var priceForm = regexp.MustCompile(`^([0-9]+(?:[.,][0-9]+)?) €/(\S(?:.*\S)?)$`)

// ParsePrice splits a price into its amount in euros and its period.
func ParsePrice(s string) (amount float64, period string, ok bool) {
	parts := priceForm.FindStringSubmatch(s)
	if parts == nil {
		return 0, "", false
	}
	amount, err := strconv.ParseFloat(strings.Replace(parts[1], ",", ".", 1), 64)
	return amount, parts[2], err == nil && !isBlank(parts[2])
}

func kindName(value jsontext.Value) string {
	switch value.Kind() {
	case '"':
		return "text"
	case '0':
		return "a number"
	case '[':
		return "a list"
	case '{':
		return "an object"
	}
	return string(value) // true, false or null
}

// maxQuoted is how many characters of a wrong value an error message repeats.
const maxQuoted = 64

// shorten repeats a number as the feed has it.
func shorten(value jsontext.Value) string {
	if len(value) > maxQuoted {
		return string(value[:maxQuoted]) + "…"
	}
	return string(value)
}

// Quote repeats text of a feed in an error message: shortened, and without
// characters that would control a terminal.
func Quote(s string) string {
	if utf8.RuneCountInString(s) > maxQuoted {
		s = string([]rune(s)[:maxQuoted]) + "…"
	}
	return `"` + strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, s) + `"`
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

// quoteName quotes the name of an unknown field unless it is harmless.
func quoteName(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return Quote(name)
}
