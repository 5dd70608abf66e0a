package params

import (
	"regexp"
	"strconv"
	"time"
)

// RelativeDates matches dates that are relative to the release that is read: the days,
// months or years before its date, its date itself, or that of the release before it.
const RelativeDates = `-[1-9][0-9]{0,3}[dmy]|latest|previous`

var relativeDate = regexp.MustCompile(`^(?:` + RelativeDates + `)$`)

// IsRelativeDate reports whether a text is a relative date.
func IsRelativeDate(text string) bool { return relativeDate.MatchString(text) }

// ResolveDate returns the day of a relative date, given the dates of the release that
// is read and of the one before it.
func ResolveDate(relative, latest, previous string) string {
	switch relative {
	case "latest":
		return latest
	case "previous":
		return previous
	}
	day, err := time.Parse(time.DateOnly, latest)
	last := len(relative) - 1
	n, invalid := strconv.Atoi(relative[1:last])
	if err != nil || invalid != nil {
		return latest
	}
	switch relative[last] {
	case 'd':
		return day.AddDate(0, 0, -n).Format(time.DateOnly)
	case 'y':
		n *= 12
	}
	month := time.Date(day.Year(), day.Month()-time.Month(n), 1, 0, 0, 0, 0, time.UTC)
	end := month.AddDate(0, 1, -1) // of a month that may be shorter
	return month.AddDate(0, 0, min(day.Day(), end.Day())-1).Format(time.DateOnly)
}
