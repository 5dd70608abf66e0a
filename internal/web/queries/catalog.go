package queries

import (
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
	tools, categories map[string]string // names by slug
	metric            string            // the only one of a series, or ""
	from, until       time.Time         // the first release, and the one that was read
}

// catalogQuery reads the names of tools and categories.
const catalogQuery = `query($slugs: [String!], $language: Language!) {
  categories { slug label(language: $language) }
  tools(limit: 200, filter: {slugs: $slugs}) { items { slug name } }
  oldest: releases(last: 1) { nodes { date } }
}`

var (
	slug       = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	onlyMetric = regexp.MustCompile(`metrics:\s*\[?\s*(\w+)\s*\]?\s*[,)\s]`)
)

const maxSlugs = 200

// readCatalog looks up what a table may refer to. A name that cannot be read is shown
// as the slug.
func (p *Pages) readCatalog(ctx context.Context, l lang.Language, view *saved.View, t *table) (c catalog) {
	c.until, _ = time.Parse(time.DateOnly, view.Result.UpdatedAt)
	if found := onlyMetric.FindAllStringSubmatch(view.Text, -1); len(found) == 1 {
		c.metric = found[0][1]
	}
	seen := map[string]bool{}
	slugs := []any{"-"} // no tool; an empty list is not allowed
	for _, r := range t.Rows {
		for _, value := range r {
			if len(slugs) < maxSlugs && !value.IsNumber && len(value.Text) <= params.MaxText && !seen[value.Text] && slug.MatchString(value.Text) {
				seen[value.Text], slugs = true, append(slugs, value.Text)
			}
		}
	}
	var found struct {
		Categories []struct{ Slug, Label string }
		Tools      struct {
			Items []struct{ Slug, Name string }
		}
		Oldest struct{ Nodes []struct{ Date string } }
	}
	if p.Queries.Executor.Execute(ctx, graph.Request{Query: catalogQuery, Variables: map[string]any{"slugs": slugs, "language": string(l)}}).Decode(&found) != nil {
		return c
	}
	c.tools, c.categories = map[string]string{}, map[string]string{}
	for _, t := range found.Tools.Items {
		c.tools[t.Slug] = t.Name
	}
	for _, category := range found.Categories {
		c.categories[category.Slug] = category.Label
	}
	for _, release := range found.Oldest.Nodes {
		c.from, _ = time.Parse(time.DateOnly, release.Date)
	}
	return c
}

// name returns the words for a value of a column.
func (c *catalog) name(l lang.Language, column, value string) string {
	if name, ok := c.categories[value]; ok {
		return name
	}
	if name, ok := c.tools[value]; ok {
		return name
	}
	if name, ok := words.Code(l, value); ok {
		return words.Sentence(name)
	}
	switch saved.LastName(column) {
	case "key", "thenKey", "slug", "category", "categorySlug": // the item has been removed
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
	case "key", "thenKey":
		known := map[string]int{}
		for _, r := range t.Rows {
			_, isCode := words.Code(l, r[column].Text)
			switch value := r[column].Text; {
			case c.categories[value] != "":
				known["category"]++
			case c.tools[value] != "":
				known["tool"]++
			case isCode:
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
				value.Text = format(value.Number)
			case value.IsNumber && value.Number != math.Trunc(value.Number):
				value.Text = l.Decimal(value.Number, 0, 6)
			case isText && isPrice:
				value.Text = strings.ReplaceAll(price, "/", l.Text(" per "))
			case isText && field == "metric":
				value.Text = metricName(l, value.Text)
			case isText && field != "slug" && slug.MatchString(strings.ReplaceAll(value.Text, "_", "-")):
				value.Text = c.name(l, column, value.Text)
			}
		}
	}
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
