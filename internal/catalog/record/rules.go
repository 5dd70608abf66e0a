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

	"palmares/internal/catalog/pricing"
	"palmares/internal/core/params"
)

// rule defines which JSON values a field accepts.
type rule struct {
	schema Schema // in events
	feed   Schema // what a feed requires beyond schema
	// read sets a field to a value, or reports what is wrong with the value.
	read func(value jsontext.Value, into reflect.Value, report Reporter)
}

// Schema is a JSON Schema.
type Schema = map[string]any

// DateSchema describes a calendar date.
var DateSchema = Schema{"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}

var stringSchema = Schema{"type": "string"}

// The rules for strings, by the name in the rule tag. A pattern means the same in Go
// and in JavaScript, or accepts more: validators use either.
var textRules = map[string]rule{
	"text":    textRule(stringSchema, Schema{"pattern": `^[^\x00]*[^\x00\s][^\x00]*$`}, checkText),
	"slug":    textRule(stringSchema, Schema{"pattern": slugForm.String(), "maxLength": maxSlug}, CheckSlug),
	"url":     textRule(stringSchema, Schema{"pattern": `^[Hh][Tt][Tt][Pp][Ss]?://([^\s/?#]*@)?[^\s/?#@:][^\s/?#@]*([/?#]\S*)?$`}, checkURL),
	"price":   textRule(stringSchema, Schema{"pattern": pricing.Pattern}, checkPrice),
	"date":    textRule(DateSchema, Schema{"format": "date"}, CheckDate),
	"icp":     oneOf(Codes("icp")...),
	"pricing": oneOf(Codes("pricing")...),
	"reason":  oneOf(Codes("retired_reason")...),
	// Fields of a tool with a single value, which a source can confirm.
	"toolfield": oneOf(singleFields(reflect.TypeFor[Tool]())...),
}

// singleFields returns the names of the fields of a record that are neither lists nor
// objects.
func singleFields(recordType reflect.Type) (names []string) {
	for f := range recordType.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.Type.Kind() != reflect.Slice && f.Type.Kind() != reflect.Struct {
			names = append(names, name)
		}
	}
	return names
}

// newRule returns the rule for a Go type and a rule tag: the name of one of textRules
// for strings, a range such as 0..10 for numbers, nothing for booleans, objects and
// lists. A pointer also accepts null.
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
		var least, most int
		if _, err := fmt.Sscanf(strings.Replace(tag, "..", " ", 1), "%d %d", &least, &most); err == nil {
			return numberRule(t.Kind() == reflect.Int, least, most), nil
		}
	case reflect.Bool:
		return boolRule, nil
	case reflect.Struct:
		return objectRule(t), nil
	case reflect.Slice:
		return listRule(t.Elem()), nil
	}
	return rule{}, fmt.Errorf("there is no rule %q for a %s", tag, t)
}

// textRule accepts strings in which check finds no problem.
func textRule(schema, feed Schema, check func(string) (problem string)) rule {
	return rule{schema, feed, func(value jsontext.Value, into reflect.Value, report Reporter) {
		if value.Kind() != '"' {
			problem := "must be a string (got " + kindName(value) + ")"
			if kind := value.Kind(); kind == '0' || kind == 't' || kind == 'f' {
				problem += "; put it in quotation marks"
			}
			report("", problem)
			return
		}
		unquoted, err := jsontext.AppendUnquote(nil, value)
		problem := "is not a valid string"
		if err == nil {
			problem = check(string(unquoted))
		}
		if problem != "" {
			report("", problem)
			return
		}
		into.SetString(string(unquoted))
	}}
}

func oneOf(allowed ...string) rule {
	return textRule(Schema{"enum": allowed}, nil, func(s string) string {
		if !slices.Contains(allowed, s) {
			return fmt.Sprintf("must be one of %s (got %s)", strings.Join(allowed, ", "), Quote(s))
		}
		return ""
	})
}

func numberRule(whole bool, least, most int) rule {
	kind := "number"
	if whole {
		kind = "integer"
	}
	return rule{Schema{"type": kind, "minimum": least, "maximum": most}, nil, func(value jsontext.Value, into reflect.Value, report Reporter) {
		number, _ := strconv.ParseFloat(string(value), 64) // infinite if too large
		got := func() string { return params.Truncate(string(value)) }
		switch {
		case value.Kind() == '"': // such as 8,4 in a file that allows texts without quotation marks
			unquoted, _ := jsontext.AppendUnquote(nil, value)
			report("", "must be a number without quotation marks, such as 8.4 (got "+Quote(string(unquoted))+")")
		case value.Kind() != '0':
			report("", "must be a number (got "+kindName(value)+")")
		case least == most && number != float64(least):
			report("", fmt.Sprintf("must be %d (got %s)", least, got()))
		case number < float64(least):
			report("", fmt.Sprintf("must be at least %d (got %s)", least, got()))
		case number > float64(most):
			report("", fmt.Sprintf("must be at most %d (got %s)", most, got()))
		case whole && number != math.Trunc(number):
			report("", "must be a whole number (got "+got()+")")
		case whole:
			into.SetInt(int64(number))
		default:
			into.SetFloat(number + 0) // turns -0 into 0
		}
	}}
}

var boolRule = rule{Schema{"type": "boolean"}, nil, func(value jsontext.Value, into reflect.Value, report Reporter) {
	if value.Kind() != 't' && value.Kind() != 'f' {
		report("", "must be true or false (got "+kindName(value)+")")
		return
	}
	into.SetBool(value.Kind() == 't')
}}

func orNull(t reflect.Type, inner rule) rule {
	return rule{Schema{"anyOf": []Schema{inner.schema, {"type": "null"}}}, nil, func(value jsontext.Value, into reflect.Value, report Reporter) {
		if value.Kind() != 'n' {
			pointer := reflect.New(t)
			inner.read(value, pointer.Elem(), report)
			into.Set(pointer)
		}
	}}
}

// objectRule accepts an object with the fields of a struct.
func objectRule(t reflect.Type) rule {
	fields := newTable(t, nil)
	return rule{fields.schema(), nil, func(value jsontext.Value, into reflect.Value, report Reporter) {
		fields.readObject(NewDecoder(value), into, report)
	}}
}

// listRule accepts a list of objects.
func listRule(element reflect.Type) rule {
	fields := newTable(element, nil)
	return rule{Schema{"type": "array", "items": fields.schema()}, nil, func(value jsontext.Value, into reflect.Value, report Reporter) {
		if value.Kind() != '[' {
			report("", "must be an array (got "+kindName(value)+")")
			return
		}
		dec := NewDecoder(value)
		_, _ = dec.ReadToken() // the bracket: value is valid JSON
		for i := 0; dec.PeekKind() != ']'; i++ {
			item := reflect.New(element).Elem()
			if fields.readObject(dec, item, func(path, problem string) { report(fmt.Sprintf("[%d]%s", i, path), problem) }) {
				into.Set(reflect.Append(into, item))
			}
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

// isBlank reports whether a string has no visible characters.
func isBlank(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) })
}

const maxSlug = 80

var slugForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// CheckSlug returns what is wrong with a slug, or nothing.
func CheckSlug(s string) string {
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

// CheckDate returns what is wrong with a date, or nothing.
func CheckDate(s string) string {
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
	if _, period, ok := pricing.Parse(s); !ok || isBlank(period) {
		return "must be <amount> €/<period>, such as 20 €/mois (got " + Quote(s) + ")"
	}
	return ""
}

func kindName(value jsontext.Value) string {
	switch value.Kind() {
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "an array"
	case '{':
		return "an object"
	}
	return string(value) // true, false or null
}

// Quote quotes a value of a feed in an error message, shortened and without control
// characters, which could affect a terminal.
func Quote(s string) string {
	return `"` + strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, params.Truncate(s)) + `"`
}
