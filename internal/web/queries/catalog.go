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
	"palmares/internal/catalog/release"
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
	Shown    []int // columns that are not only for programs, with the names first
}

// catalog is what a page says about a result besides its values: names instead of
// slugs, and when the catalog starts and ends.
type catalog struct {
	find        func(slug string) (name, kind string)     // of a tool or category in the release; nil if it cannot be read
	list        func(name string) (argument, code string) // what distinguishes a list of a query; nil if there is no query
	label       func(french string) string                // of a category, in the language of the page; nil if it cannot be read
	metric      string                                    // the only one of a series, or ""
	unit        chart.Unit                                // of changes
	byRelease   bool                                      // series have a value for each edition
	from, until time.Time                                 // the first release, and the one that was read
}

var (
	slug       = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	onlyMetric = regexp.MustCompile(`metrics:\s*\[?\s*(\w+)\s*\]?\s*[,)\s]`)
	moved      = regexp.MustCompile(`movers\([^)]*metric:\s*(\w+)`)
	byRelease  = regexp.MustCompile(`every:\s*release\b`)
)

// readCatalog looks up what a table may refer to, in the release that it shows. A name that
// cannot be read is shown as the slug.
func readCatalog(ctx context.Context, l lang.Language, view *saved.View, executor *graph.Executor) (c catalog) {
	c.list = view.List
	c.until, _ = time.Parse(time.DateOnly, view.Result.UpdatedAt)
	if found := onlyMetric.FindAllStringSubmatch(view.Text, -1); len(found) == 1 {
		c.metric = found[0][1]
	}
	if found := moved.FindAllStringSubmatch(view.Text, -1); len(found) == 1 {
		c.unit = map[string]chart.Unit{"score": chart.Score, "price": chart.Euros}[found[0][1]]
	}
	c.byRelease = byRelease.MatchString(view.Text)
	shown, err := executor.Release(ctx, graph.AsOf{Release: view.Result.Release})
	if err != nil || len(shown.All) == 0 {
		return c
	}
	c.from, _ = time.Parse(time.DateOnly, shown.All[len(shown.All)-1].FeedDate)
	c.find = func(slug string) (name, kind string) {
		found := shown.Category(slug)
		if found == nil {
			if t := shown.Tool(slug); t != nil {
				return lang.Typeset(t.Name), "tool"
			}
			if found = shown.FormerCategory(slug); found != nil {
				return l.Text("%s (removed)", labelOf(l, found)), "category"
			}
			return "", ""
		}
		return labelOf(l, found), "category"
	}
	c.label = func(french string) string {
		if i := slices.IndexFunc(shown.Categories, func(c *release.Category) bool { return c.Label == french }); i >= 0 {
			return labelOf(l, shown.Categories[i])
		}
		return french
	}
	return c
}

func labelOf(l lang.Language, c *release.Category) string {
	if l == lang.English && c.Translations.En.Label != "" {
		return c.Translations.En.Label
	}
	return c.Label
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
	case "label":
		if c.label != nil {
			return c.label(value)
		}
	}
	return lang.Typeset(value)
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
	heading, unit := words.Field(l, field)
	switch {
	case field == "before" || field == "after" || field == "change":
		unit = c.unit
	case c.byRelease && field == "period":
		heading = l.Text("Edition")
	case c.byRelease && field == "start":
		heading = l.Text("Date")
	}
	return heading, unit
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
	t.addLinks(c)
	for i, column := range t.Columns {
		if count[t.Headings[i]] > 1 {
			var path []string
			for _, field := range strings.Split(column, ".") {
				if name, _ := words.Field(l, field); field != "items" && field != "nodes" && (field != "name" || len(path) == 0) {
					path = append(path, name)
				}
			}
			t.Headings[i] = strings.Join(path, " · ")
		}
		isText, field := t.KindOf(i) == saved.Texts, saved.LastName(column)
		isTime := t.KindOf(i) == saved.Dates
		format := units[i].Formatter(l, t.Numbers(i)...)
		for _, r := range t.Rows {
			if len(r[i].Text) > params.MaxText { // neither a price nor a code
				continue
			}
			price, isPrice := words.Price(l, r[i].Text)
			switch value := &r[i]; {
			case isTime && value.Text != "":
				value.Time = value.Text
				if period := chart.Period(l, value.Text); period.From > chart.Time(time.Time{}) {
					value.Text = period.Text
				}
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
			case isText && (field == "label" || isName(field)):
				value.Text = c.name(l, column, value.Text)
			}
		}
	}
}

func isName(field string) bool {
	return field == "title" || strings.HasSuffix(strings.ToLower(field), "name")
}

// addLinks links the names of tools to their pages. Slugs and identifiers beside them, and totals,
// are only for programs.
func (t *table) addLinks(c catalog) {
	names := map[int]bool{}
	for i, column := range t.Columns {
		path := column[:strings.LastIndexByte(column, '.')+1]
		slugs := slices.Index(t.Columns, path+"slug")
		if slugs < 0 && strings.HasSuffix("."+path, ".tool.") {
			slugs = slices.Index(t.Columns, strings.TrimSuffix(path, "tool.")+"slug")
		}
		switch saved.LastName(column) {
		case "key":
			slugs = i
		case "name":
		default:
			continue
		}
		for _, r := range t.Rows {
			if slugs < 0 {
				break
			}
			if _, kind := c.named(r[slugs].Text); kind == "tool" {
				r[i].Address, names[i] = "/tools/"+r[slugs].Text, true
			}
		}
	}
	first := -1
	for i, column := range t.Columns {
		switch last := saved.LastName(column); {
		case len(names) > 0 && (last == "slug" || last == "id"), last == "totalCount", strings.HasSuffix(column, "meta.total"):
		case names[i] && first < 0:
			first = i
		default:
			t.Shown = append(t.Shown, i)
		}
	}
	if first >= 0 {
		t.Shown = slices.Insert(t.Shown, 0, first)
	}
}

// leastRated is of how many comparisons a win rate is a percentage.
const leastRated = 3

// number formats a number of a row, a win rate with the number of comparisons.
func (t *table) number(l lang.Language, row []saved.Cell, column int, format func(float64) string) string {
	text, all := format(row[column].Number), slices.Index(t.Columns, "count")
	if field := saved.LastName(t.Columns[column]); row[column].Number > 0 && (field == "change" || field == "percent") {
		text = "+" + text
	}
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
