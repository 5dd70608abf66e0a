package queries

import (
	"cmp"
	"context"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"palmares/graph"
	"palmares/internal/core/lang"
	"palmares/internal/core/params"
	"palmares/internal/transport/saved"
	"palmares/internal/web/chart"
	"palmares/internal/web/words"
)

// table is a result with words for its columns.
type table struct {
	*saved.Grid
	Headings []string
}

// catalog is what a page says about a result besides its values: names instead of
// slugs, and when the catalog starts and ends.
type catalog struct {
	find        func(slug string) (name, kind string)     // of a tool or category in the release; nil if it cannot be read
	list        func(name string) (argument, code string) // what distinguishes a list of a query; nil if there is no query
	metric      string                                    // the only one of a series, or ""
	from, until time.Time                                 // the first release, and the one that was read
}

var (
	slug       = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	onlyMetric = regexp.MustCompile(`metrics:\s*\[?\s*(\w+)\s*\]?\s*[,)\s]`)
)

// readCatalog looks up what a table may refer to, in the release that it shows. A name that
// cannot be read is shown as the slug.
func readCatalog(ctx context.Context, l lang.Language, view *saved.View, executor *graph.Executor) (c catalog) {
	c.list = view.List
	c.until, _ = time.Parse(time.DateOnly, view.Result.UpdatedAt)
	if found := onlyMetric.FindAllStringSubmatch(view.Text, -1); len(found) == 1 {
		c.metric = found[0][1]
	}
	shown, err := executor.Release(ctx, graph.AsOf{Release: view.Result.Release})
	if err != nil || len(shown.All) == 0 {
		return c
	}
	c.from, _ = time.Parse(time.DateOnly, shown.All[len(shown.All)-1].FeedDate)
	c.find = func(slug string) (name, kind string) {
		found := shown.Category(slug)
		if found == nil {
			if t := shown.Tool(slug); t != nil {
				return t.Name, "tool"
			}
			found = shown.FormerCategory(slug)
		}
		switch {
		case found == nil:
			return "", ""
		case l == lang.English && found.Translations.En.Label != "":
			return found.Translations.En.Label, "category"
		}
		return found.Label, "category"
	}
	return c
}

// named returns the name and the kind of a tool or category, or "".
func (c *catalog) named(slug string) (name, kind string) {
	if c.find == nil {
		return "", ""
	}
	return c.find(slug)
}

// name returns the words for a value of a column.
func (c *catalog) name(l lang.Language, column, value string) string {
	if saved.LastName(column) == "list" && c.list != nil {
		if _, code := c.list(value); code != "" {
			value = code
		}
	} else if name, _ := c.named(value); name != "" {
		return name
	}
	if name, ok := words.Code(l, value); ok {
		return words.Sentence(name)
	}
	switch saved.LastName(column) {
	case "list", "key", "thenKey", "slug", "category", "categorySlug": // an alias, or the item has been removed
		return words.Sentence(value)
	}
	return value
}

// words returns the words for a column and its unit. Keys are named after what they
// refer to.
func (t *table) words(l lang.Language, column int, c catalog) (string, chart.Unit) {
	path := strings.Split(t.Columns[column], ".")
	field := path[len(path)-1]
	switch field {
	case "value":
		if c.metric != "" && !slices.ContainsFunc(t.Columns, func(column string) bool { return saved.LastName(column) == "metric" }) {
			field = c.metric
		}
	case "name", "label", "title", "slug":
		if len(path) > 1 && path[len(path)-2] != "items" && path[len(path)-2] != "nodes" {
			field = path[len(path)-2]
		} else if field == "name" {
			field = "tool"
		}
	case "list":
		if c.list != nil && len(t.Rows) > 0 {
			argument, _ := c.list(t.Rows[0][column].Text)
			field = cmp.Or(strings.TrimSuffix(argument, "s"), field)
		}
	case "key", "thenKey":
		known := map[string]int{}
		for _, r := range t.Rows {
			if _, kind := c.named(r[column].Text); kind != "" {
				known[kind]++
			} else if _, isCode := words.Code(l, r[column].Text); isCode {
				known["pricing"]++
			}
		}
		for kind, count := range known {
			if count > len(t.Rows)/2 { // some may have been removed
				field = kind
			}
		}
	}
	return words.Field(l, field)
}

// addWords sets the headings, and replaces codes and slugs by names, as readers of a page
// know them. Columns with the same words also have those of what contains them.
func (t *table) addWords(l lang.Language, c catalog) {
	count, units := map[string]int{}, make([]chart.Unit, len(t.Columns))
	for i := range t.Columns {
		heading, unit := t.words(l, i, c)
		t.Headings, units[i] = append(t.Headings, heading), unit
		count[heading]++
	}
	for i, column := range t.Columns {
		if count[t.Headings[i]] > 1 {
			var path []string
			for _, field := range strings.Split(column, ".") {
				if name, _ := words.Field(l, field); field != "items" && field != "nodes" {
					path = append(path, name)
				}
			}
			t.Headings[i] = strings.Join(path, " · ")
		}
		isText, field := t.KindOf(i) == saved.Texts, saved.LastName(column)
		format := units[i].Formatter(l, t.Numbers(i)...)
		for _, r := range t.Rows {
			if len(r[i].Text) > params.MaxText { // neither a price nor a code
				continue
			}
			price, isPrice := words.Price(l, r[i].Text)
			switch value := &r[i]; {
			case value.IsNumber && units[i] != chart.Number:
				value.Text = t.number(l, r, i, format)
			case value.IsNumber && value.Number != math.Trunc(value.Number):
				value.Text = l.Decimal(value.Number, 0, 6)
			case isText && isPrice:
				value.Text = strings.ReplaceAll(price, "/", l.Text(" per "))
			case isText && field == "metric":
				value.Text = metricName(l, value.Text)
			case isText && field == "list" || isText && field != "slug" && slug.MatchString(strings.ReplaceAll(value.Text, "_", "-")):
				value.Text = c.name(l, column, value.Text)
			}
		}
	}
}

// leastRated is of how many comparisons a win rate is a percentage.
const leastRated = 3

// number formats a number of a row, a win rate with the number of comparisons.
func (t *table) number(l lang.Language, row []saved.Cell, column int, format func(float64) string) string {
	text, all := format(row[column].Number), slices.Index(t.Columns, "count")
	if all < 0 || t.Columns[column] != "winRate" {
		return text
	}
	count := row[all].Number
	won := l.Text("%d of %d", int(math.Round(row[column].Number*count)), int(count))
	if count < leastRated {
		return won
	}
	return won + " (" + text + ")"
}

// metricName returns the words for a metric of a series.
func metricName(l lang.Language, metric string) string {
	if metric == "count" {
		return l.Text("Active tools")
	}
	name, _ := words.Field(l, metric)
	return name
}

// lowered returns words as they are inside a sentence.
func lowered(words string) string {
	first, size := utf8.DecodeRuneInString(words)
	return string(unicode.ToLower(first)) + words[size:]
}
