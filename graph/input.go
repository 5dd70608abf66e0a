package graph

import (
	"encoding/json"
	"math"
	"strings"
	"unicode/utf8"

	"palmares/internal/core/problem"
)

// What arguments may be. Messages say what was given only where it is short
// and harmless.
const (
	maxPage     = 1_000_000
	maxSlice    = 200 // items of a page or slice
	maxNested   = 50  // items of a category's own list
	maxListed   = 100 // values of a list, literal or variable
	maxText     = 200 // characters of a search
	maxSlugText = 500 // characters of a slug, far more than any has
)

func checkRange(name string, value, least, most int) error {
	if value < least || value > most {
		return problem.New(problem.BadInput, "%s: %d is not from %d to %d.", name, value, least, most)
	}
	return nil
}

// checkText refuses what no database could look for.
func checkText(name, value string, longest int) error {
	switch {
	case !utf8.ValidString(value):
		return problem.New(problem.BadInput, "%s: is not valid UTF-8.", name)
	case strings.ContainsRune(value, 0):
		return problem.New(problem.BadInput, "%s: holds a NUL character.", name)
	case utf8.RuneCountInString(value) > longest:
		return problem.New(problem.BadInput, "%s: is longer than %d characters.", name, longest)
	}
	return nil
}

func checkPaging(page, limit int) error {
	if err := checkRange("page", page, 1, maxPage); err != nil {
		return err
	}
	return checkRange("limit", limit, 1, maxSlice)
}

// wholeNumber reads an integer however it was decoded.
func wholeNumber(value any) (int, bool) {
	switch v := value.(type) {
	case int:
		return v, true
	case int64:
		return int(min(max(v, math.MinInt32), math.MaxInt32)), true
	case float64:
		return int(min(max(v, math.MinInt32), math.MaxInt32)), v == math.Trunc(v)
	case json.Number:
		n, err := v.Int64()
		return int(min(max(n, math.MinInt32), math.MaxInt32)), err == nil
	}
	return 0, false
}
