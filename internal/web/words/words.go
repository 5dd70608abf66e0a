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

// field is what pages call a field of results or a metric of series, and its unit.
type field struct {
	name lang.Message
	unit chart.Unit
}

// fields are in lower case without underscores. Those of records, and of statistics of
// scores and prices, are added to them.
var fields = map[string]field{
	"tool": {name: "Tool"}, "toola": {name: "First tool"}, "toolb": {name: "Second tool"}, "winnername": {name: "Winner"}, "metric": {name: "Figure"}, "key": {name: "Key"}, "list": {name: "Group"},
	"month": {name: "Month"}, "period": {name: "Period"}, "start": {name: "From"}, "since": {name: "From"}, "from": {name: "Lower bound"}, "to": {name: "Upper bound"}, "publishedat": {name: "Published"}, "billingperiod": {name: "Billing period"},
	"value": {name: "Value"}, "before": {name: "Before"}, "after": {name: "After"}, "change": {name: "Change"}, "percent": {"Change in percent", chart.Percent}, "winrate": {"Win rate", chart.Proportion},
	"count": {"Number", chart.Count}, "total": {"Total", chart.Count}, "totalcount": {"Total", chart.Count}, "wins": {"Wins", chart.Count}, "tools": {"Tools", chart.Count}, "toolcount": {"Tools", chart.Count},
	"tested": {"Tested tools", chart.Count}, "toolstested": {"Tested tools", chart.Count}, "toolstotal": {"Active tools", chart.Count}, "comparisonstotal": {"Comparisons", chart.Count},
	"additions": {"Added tools", chart.Count}, "retirements": {"Retired tools", chart.Count}, "toolsretired": {"Retired tools", chart.Count},
	"meandayssinceupdate": {"Average days since the last review", chart.Days}, "mediandayssinceupdate": {"Median days since the last review", chart.Days},
}

func init() {
	for _, f := range record.Fields {
		key, unit := plain.Replace(f.Name), chart.Number
		if f.Mean != "" {
			unit = chart.Score
			fields["mean"+key] = field{f.Mean, unit}
		}
		fields[key] = field{f.Label, unit}
	}
	for prefix, names := range map[string][2]lang.Message{
		"": {"Score", "Monthly price, €"}, "previous": {"Previous score", "Previous monthly price, €"}, "min": {"Lowest score", "Lowest monthly price, €"}, "max": {"Highest score", "Highest monthly price, €"},
		"avg": {"Average score", "Average monthly price, €"}, "mean": {"Average score", "Average monthly price, €"}, "toolsavg": {"Average score", "Average monthly price, €"},
		"median": {"Median score", "Median monthly price, €"}, "p25": {"Score, 25th percentile", "Monthly price, 25th percentile, €"},
		"p75": {"Score, 75th percentile", "Monthly price, 75th percentile, €"}, "p90": {"Score, 90th percentile", "Monthly price, 90th percentile, €"},
	} {
		fields[prefix+"score"], fields[prefix+"monthlyprice"] = field{names[0], chart.Score}, field{names[1], chart.Euros}
	}
}

var plain = strings.NewReplacer("_", "")

// Field returns the words for a field, with its unit, and the unit. An unlisted one is
// split into its words.
func Field(l lang.Language, name string) (words string, unit chart.Unit) {
	if f, ok := fields[strings.ToLower(plain.Replace(name))]; ok {
		return l.Text(f.name), f.unit
	}
	return Sentence(name), chart.Number
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
