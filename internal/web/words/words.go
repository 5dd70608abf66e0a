// Package words has the words for the fields and codes of the API, for pages.
package words

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"palmares/internal/catalog/record"
	"palmares/internal/core/lang"
	"palmares/internal/web/chart"
)

// fields are the words for metrics of series and for fields of results, in lower case
// without underscores. Those of records are added to them.
var fields = map[string]lang.Message{
	"tool": "Tool", "toola": "First tool", "toolb": "Second tool", "month": "Month", "period": "Period", "start": "From", "from": "From", "since": "From", "to": "To",
	"metric": "Figure", "value": "Value", "key": "Key", "list": "Group", "count": "Number", "tools": "Tools", "toolcount": "Tools", "total": "Total", "before": "Before", "after": "After",
	"change": "Change", "percent": "Change in percent", "wins": "Wins", "winrate": "Win rate", "publishedat": "Published", "billingperiod": "Billing period",
	"tested": "Tested tools", "additions": "Added tools", "winnername": "Winner", "retirements": "Retired tools", "toolstotal": "Active tools", "toolsretired": "Retired tools",
	"toolstested": "Tested tools", "comparisonstotal": "Comparisons", "meandayssinceupdate": "Average days since the last review",
	"mediandayssinceupdate": "Median days since the last review",
}

// ratings are the fields whose values are like scores, and their averages.
var ratings = map[string]bool{}

func init() {
	for _, f := range record.Fields {
		key := plain.Replace(f.Name)
		fields[key] = f.Label
		if f.Mean != "" {
			fields["mean"+key] = f.Mean
			ratings[key], ratings["mean"+key] = true, true
		}
	}
}

// statistics are the beginnings of fields that summarize scores or prices.
var statistics = map[string][2]lang.Message{
	"avg": {"Average score", "Average monthly price, €"}, "mean": {"Average score", "Average monthly price, €"}, "toolsavg": {"Average score", "Average monthly price, €"},
	"median": {"Median score", "Median monthly price, €"}, "min": {"Lowest score", "Lowest monthly price, €"}, "max": {"Highest score", "Highest monthly price, €"},
	"p25": {"Score, 25th percentile", "Monthly price, 25th percentile, €"}, "p75": {"Score, 75th percentile", "Monthly price, 75th percentile, €"},
	"p90": {"Score, 90th percentile", "Monthly price, 90th percentile, €"}, "": {"Score", "Monthly price, €"}, "previous": {"Previous score", "Previous monthly price, €"},
}

var plain = strings.NewReplacer("_", "")

// Field returns the words for a field, with its unit, and the unit. An unlisted one is
// split into its words.
func Field(l lang.Language, field string) (name string, unit chart.Unit) {
	key := strings.ToLower(plain.Replace(field))
	for i, suffix := range []string{"score", "monthlyprice"} {
		if start, ok := strings.CutSuffix(key, suffix); ok && statistics[start][i] != "" {
			return l.Text(statistics[start][i]), []chart.Unit{chart.Score, chart.Euros}[i]
		}
	}
	switch {
	case key == "percent":
		unit = chart.Percent
	case key == "winrate":
		unit = chart.Proportion
	case ratings[key]:
		unit = chart.Score
	case strings.HasSuffix(key, "dayssinceupdate"):
		unit = chart.Days
	case strings.HasSuffix(key, "count") || strings.HasSuffix(key, "total") || key == "tools" || key == "wins" || key == "tested" || key == "toolstested" || IsFlow(key) || key == "toolsretired":
		unit = chart.Count
	}
	if name, ok := fields[key]; ok {
		return l.Text(name), unit
	}
	return Sentence(field), unit
}

// Input returns the words for a number that a reader chooses, with its unit.
func Input(l lang.Language, field string) string {
	if field == "price" { // filters compare prices per month
		field = "monthlyPrice"
	}
	name, unit := Field(l, field)
	if unit == chart.Score {
		return l.Text("%s out of 10", name)
	}
	return name
}

// IsFlow reports whether a field counts what happened in a period, so that a period
// without a value had none.
func IsFlow(field string) bool {
	return field == "count" || field == "additions" || field == "retirements"
}

// orders are the words for the orders of lists.
var orders = map[string]lang.Message{
	"score_desc": "Highest score first", "score_asc": "Lowest score first", "name_asc": "Name, A to Z", "name_desc": "Name, Z to A",
	"relevance": "Best match first", "updated_desc": "Recently updated first", "updated_asc": "Least recently updated first", "monthly_price_asc": "Lowest price first", "monthly_price_desc": "Highest price first",
}

// Code returns the name of one of the catalog's codes. ok is false, and the code
// returned, if it is none.
func Code(l lang.Language, code string) (name string, ok bool) {
	word, ok := record.Word(code)
	if order, isOrder := orders[code]; isOrder {
		word, ok = order, true
	}
	if !ok {
		return code, false
	}
	return l.Text(word), true
}

// Sentence turns a slug or the name of a field into words.
func Sentence(name string) string {
	var spaced strings.Builder
	for i, r := range name {
		switch {
		case r == '-' || r == '_' || r == '.':
			r = ' '
		case unicode.IsUpper(r) && i > 0 && !strings.Contains(name, " "):
			spaced.WriteByte(' ')
			r = unicode.ToLower(r)
		}
		spaced.WriteRune(r)
	}
	text := strings.Join(strings.Fields(spaced.String()), " ")
	first, size := utf8.DecodeRuneInString(text)
	if text == "" {
		return name
	}
	return string(unicode.ToUpper(first)) + text[size:]
}
