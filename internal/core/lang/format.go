package lang

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/number"
)

// Number formats a whole number.
func (l Language) Number(n int) string { return l.printer().Sprintf("%d", n) }

// Decimal formats a number with a minimum and a maximum number of decimals.
func (l Language) Decimal(x float64, minDecimals, maxDecimals int) string {
	return l.printer().Sprint(number.Decimal(x, number.MinFractionDigits(minDecimals), number.MaxFractionDigits(maxDecimals)))
}

// Percent formats a change in percent, with its sign: "+25%", "−12.5%" or
// "+25 %".
func (l Language) Percent(change float64) string {
	sign, space := "+", ""
	if change < 0 {
		sign, change = "−", -change
	}
	if l == French {
		space = nbsp
	}
	return sign + l.Decimal(change, 0, 1) + space + "%"
}

var months = map[Language][12]string{
	English: {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"},
	French:  {"janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre", "novembre", "décembre"},
}

var shortMonths = map[Language][12]string{
	English: {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"},
	French:  {"janv.", "févr.", "mars", "avr.", "mai", "juin", "juil.", "août", "sept.", "oct.", "nov.", "déc."},
}

// Day formats a day as "7 July 2026".
func (l Language) Day(t time.Time) string { return l.day(t, months) }

// ShortDay formats a day as "7 Jul 2026".
func (l Language) ShortDay(t time.Time) string { return l.day(t, shortMonths) }

func (l Language) day(t time.Time, names map[Language][12]string) string {
	t = t.UTC()
	number := strconv.Itoa(t.Day())
	if l == French && t.Day() == 1 {
		number = "1er"
	}
	return number + nbsp + names[Parse(string(l))][t.Month()-1] + nbsp + strconv.Itoa(t.Year())
}

// Month formats a month as "July 2026".
func (l Language) Month(t time.Time) string {
	return months[Parse(string(l))][t.Month()-1] + nbsp + strconv.Itoa(t.Year())
}

// ShortMonth formats a month as "Jul 2026".
func (l Language) ShortMonth(t time.Time) string {
	return shortMonths[Parse(string(l))][t.Month()-1] + nbsp + strconv.Itoa(t.Year())
}

// Time formats a time as "7 July 2026, 14:05 UTC".
func (l Language) Time(t time.Time) string {
	join := ", "
	if l == French {
		join = " à "
	}
	return l.Day(t) + join + t.UTC().Format("15:04") + nbsp + "UTC"
}

// DayOf formats a date like "2026-07-07" like Day. Other strings are returned unchanged.
func (l Language) DayOf(date string) string { return formatDate(date, l.Day) }

// ShortDayOf formats a date like "2026-07-07" like ShortDay. Other strings are
// returned unchanged.
func (l Language) ShortDayOf(date string) string { return formatDate(date, l.ShortDay) }

func formatDate(date string, format func(time.Time) string) string {
	if t, err := time.Parse(time.DateOnly, date); err == nil {
		return format(t)
	}
	return date
}

const nbsp = "\u00a0"

// Ordinal formats a place in a ranking: "1st", "22nd" or "1er", "22e".
func (l Language) Ordinal(n int) string {
	suffix := "th"
	switch {
	case l == French && n == 1:
		suffix = "er"
	case l == French:
		suffix = "e"
	case n/10%10 == 1:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return l.Number(n) + suffix
}

// List joins names: "a, b and c" or "a, b et c".
func (l Language) List(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return l.Text("%s and %s", strings.Join(names[:last], ", "), names[last])
}

// Euros formats an amount: "€19", "€7.50" or "19 €", "7,50 €".
func (l Language) Euros(amount float64) string {
	decimals := 0
	if amount != float64(int(amount)) {
		decimals = 2
	}
	text := l.Decimal(amount, decimals, 2)
	if l == French {
		return text + nbsp + "€"
	}
	return "€" + text
}
