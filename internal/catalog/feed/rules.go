package feed

import (
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// A rule reads one value into a record of type R, or says what is wrong with
// it. It reports nested values, such as those of a section, one by one.
type rule[R any] func(rec *R, value jsontext.Value, report reporter)

// reporter takes a fault of a value, below the field at path ("" for itself).
type reporter func(path, problem string)

// Enums, spelled as the interface does.
var (
	icps     = []string{"vibe-coder", "agentic-engineer", "mixte"}
	pricings = []string{"gratuit", "freemium", "payant"}
	reasons  = []string{"mort", "acquis", "deprecie", "pivot", "absorbe"}
)

const maxSlug = 80

var (
	slugForm  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	priceForm = regexp.MustCompile(`^([0-9]+(?:[.,][0-9]+)?) €/(\S(?:.*\S)?)$`)
)

// checked makes a rule for a string that must pass check.
func checked[R any](at func(*R) *string, check func(string) string) rule[R] {
	return func(rec *R, value jsontext.Value, report reporter) {
		s, problem := stringOf(value)
		if problem == "" {
			problem = check(s)
		}
		if problem != "" {
			report("", problem)
			return
		}
		*at(rec) = s
	}
}

// orNull also takes null, which leaves the field at nil.
func orNull[R any](at func(*R) **string, check func(string) string) rule[R] {
	return func(rec *R, value jsontext.Value, report reporter) {
		if value.Kind() == 'n' {
			return
		}
		var s string
		checked(func(*R) *string { return &s }, check)(rec, value, report)
		*at(rec) = &s
	}
}

func textOf[R any](at func(*R) *string) rule[R] { return checked(at, checkText) }
func slug[R any](at func(*R) *string) rule[R]   { return checked(at, checkSlug) }
func date[R any](at func(*R) *string) rule[R]   { return checked(at, checkDate) }
func link[R any](at func(*R) *string) rule[R]   { return checked(at, checkLink) }
func price[R any](at func(*R) *string) rule[R]  { return checked(at, checkPrice) }

func oneOf[R any](at func(*R) *string, allowed []string) rule[R] {
	return checked(at, func(s string) string {
		if !slices.Contains(allowed, s) {
			return fmt.Sprintf("%s is none of %s", quote(s), strings.Join(allowed, ", "))
		}
		return ""
	})
}

// scale is a number from 0 to 10, or null.
func scale[R any](at func(*R) **float64) rule[R] {
	return func(rec *R, value jsontext.Value, report reporter) {
		if value.Kind() == 'n' {
			return
		}
		number, problem := numberOf(value)
		switch {
		case problem != "":
			report("", problem)
		case number < 0:
			report("", shorten(value)+" is under 0")
		case number > 10:
			report("", shorten(value)+" is over 10")
		default:
			number += 0 // there is no score of -0
			*at(rec) = &number
		}
	}
}

func whole[R any](at func(*R) *int, least, most int) rule[R] {
	return func(rec *R, value jsontext.Value, report reporter) {
		number, problem := numberOf(value)
		switch {
		case problem != "":
			report("", problem)
		case number != math.Trunc(number):
			report("", shorten(value)+" is not a whole number")
		case number < float64(least) || number > float64(most):
			report("", fmt.Sprintf("%s is not from %d to %d", shorten(value), least, most))
		default:
			*at(rec) = int(number)
		}
	}
}

// version is the format's number, of which there is only one so far.
func version[R any](at func(*R) *int) rule[R] {
	return func(rec *R, value jsontext.Value, report reporter) {
		if string(value) != strconv.Itoa(formatVersion) {
			report("", fmt.Sprintf("%s is not known: this palmares reads format %d", shorten(value), formatVersion))
			return
		}
		*at(rec) = formatVersion
	}
}

func flag[R any](at func(*R) *bool) rule[R] {
	return func(rec *R, value jsontext.Value, report reporter) {
		switch value.Kind() {
		case 't':
			*at(rec) = true
		case 'f':
			*at(rec) = false
		default:
			report("", kindName(value)+" is given, true or false is expected")
		}
	}
}

func checkText(s string) string {
	switch {
	case isBlank(s):
		return "is blank"
	case strings.ContainsRune(s, 0):
		return "holds a NUL character"
	}
	return ""
}

// isBlank tells that nothing of a text can be seen.
func isBlank(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) })
}

func checkSlug(s string) string {
	switch {
	case s == "":
		return "is blank"
	case !slugForm.MatchString(s):
		return quote(s) + " is not a slug: words of a-z and 0-9 joined by single -"
	case len(s) > maxSlug:
		return fmt.Sprintf("%s is longer than %d characters", quote(s), maxSlug)
	}
	return ""
}

func checkDate(s string) string {
	if _, err := time.Parse(time.DateOnly, s); err != nil {
		return quote(s) + " is not a real date, YYYY-MM-DD"
	}
	return ""
}

func checkLink(s string) string {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || !isPort(u.Port()) || strings.ContainsFunc(s, isSpaceOrControl) {
		return quote(s) + " is not an absolute http or https address"
	}
	return ""
}

func isSpaceOrControl(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) }

// isPort takes none, too.
func isPort(port string) bool {
	if port == "" {
		return true
	}
	_, err := strconv.ParseUint(port, 10, 16)
	return err == nil
}

func checkPrice(s string) string {
	if _, _, ok := parsePrice(s); !ok {
		return quote(s) + " is not a price: <amount> €/<period>"
	}
	return checkText(s)
}

// parsePrice splits a price into its number of euros and its period.
func parsePrice(s string) (amount float64, period string, ok bool) {
	parts := priceForm.FindStringSubmatch(s)
	if parts == nil {
		return 0, "", false
	}
	amount, err := strconv.ParseFloat(strings.Replace(parts[1], ",", ".", 1), 64)
	return amount, parts[2], err == nil && !isBlank(parts[2])
}

// stringOf and numberOf read a JSON value, or say what it is instead.
func stringOf(value jsontext.Value) (s, problem string) {
	if value.Kind() != '"' {
		return "", kindName(value) + " is given, text is expected"
	}
	unquoted, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return "", "is not valid text"
	}
	return string(unquoted), ""
}

func numberOf(value jsontext.Value) (number float64, problem string) {
	if value.Kind() != '0' {
		return 0, kindName(value) + " is given, a number is expected"
	}
	number, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return 0, shorten(value) + " is out of range"
	}
	return number, ""
}

func kindName(value jsontext.Value) string {
	switch value.Kind() {
	case '"':
		return "text"
	case '0':
		return "a number"
	case 't', 'f':
		return string(value)
	case 'n':
		return "null"
	case '[':
		return "a list"
	default:
		return "an object"
	}
}

// shorten repeats a number as it was written, within reason.
func shorten(value jsontext.Value) string {
	if len(value) > maxQuoted {
		return string(value[:maxQuoted]) + "…"
	}
	return string(value)
}
