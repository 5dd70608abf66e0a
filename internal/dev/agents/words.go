package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"palmares/internal/core/text"
)

// format writes a JSON value as text.
func format(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case map[string]any:
		var all []string
		for _, name := range slices.Sorted(maps.Keys(value)) {
			all = append(all, format(value[name]))
		}
		return strings.Join(all, " ")
	}
	return fmt.Sprint(value)
}

var (
	wordPattern = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}|[\pL0-9_]+`)
	datePattern = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
	number      = regexp.MustCompile(`^[0-9]+$`)
)

// words returns the words of a call, folded: of its tool, if it starts with one, and
// the values of its arguments, without words to search for, which an agent chooses
// itself.
func words(call string) []string {
	name, arguments, hasName := strings.Cut(call, " ")
	if strings.HasPrefix(call, "{") || !hasName {
		name, arguments = "", call
	}
	var given map[string]any
	if json.Unmarshal([]byte(arguments), &given) == nil {
		delete(given, "search")
		if query, _ := given["query"].(string); !strings.HasPrefix(query, "{") {
			delete(given, "query")
		}
		arguments = fmt.Sprint(slices.Collect(maps.Values(given))) // agents know their names from the list of tools
	}
	return wordPattern.FindAllString(text.Fold(name+" "+arguments), -1)
}

// missing returns the words that a folded text does not contain. An agent can write a
// date if it sees the form of dates.
func missing(all []string, folded string) (absent []string) {
	for _, word := range all {
		isDate := datePattern.MatchString(word) && strings.Contains(folded, "yyyy-mm-dd")
		if !strings.Contains(folded, word) && !isDate {
			absent = append(absent, word)
		}
	}
	return absent
}

// withoutNumbers omits numbers, which agents compute themselves.
func withoutNumbers(all []string) []string {
	return slices.DeleteFunc(all, number.MatchString)
}
