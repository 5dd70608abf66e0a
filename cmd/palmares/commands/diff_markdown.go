package commands

import (
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"palmares/internal/catalog/publish"
	"palmares/internal/catalog/record"
	"palmares/internal/core/lang"
	"palmares/internal/core/text"
)

// maxDiffRows limits each table, because code hosts limit the length of a comment.
const maxDiffRows = 50

// WriteMarkdown writes a diff as a comment for a pull request.
func WriteMarkdown(w io.Writer, d *publish.Diff) error {
	var out strings.Builder
	out.WriteString("## Catalog changes\n\n")
	writeSummary(&out, d)
	of := func(kind string) (found []publish.Change) {
		for _, c := range d.Tools {
			if c.Change == kind {
				found = append(found, c)
			}
		}
		return found
	}
	writeTable(&out, "Added tools", "slug|name", of(publish.DiffCreated), func(c publish.Change) []string {
		if c.PreviousType != "" {
			return []string{c.Slug, escapeMarkdown(c.Name) + " (was retired)"}
		}
		return []string{c.Slug, escapeMarkdown(c.Name)}
	})
	writeTable(&out, "Retired tools", "slug|name|reason", of(publish.DiffRetired), func(c publish.Change) []string {
		return []string{c.Slug, escapeMarkdown(c.Name), c.Reason}
	})
	writeTable(&out, "Removed tools", "slug|name", of(publish.DiffRemoved), func(c publish.Change) []string {
		return []string{c.Slug, escapeMarkdown(c.Name)}
	})
	writeTable(&out, "Price changes", "slug|old|new|change", d.Prices, func(p publish.PriceDiff) []string {
		before, after := escapeMarkdown(p.OldPrice), escapeMarkdown(p.NewPrice)
		if p.OldPricing != p.NewPricing {
			before, after = before+" ("+p.OldPricing+")", after+" ("+p.NewPricing+")"
		}
		return []string{p.Slug, before, after, formatPercent(p.Percent)}
	})
	writeTable(&out, "Score changes", "slug|old|new|change", d.Scores, func(s publish.ScoreDiff) []string {
		return []string{s.Slug, formatScore(s.Old), formatScore(s.New), formatPercent(s.Percent)}
	})
	writeTable(&out, "Other changes to tools", "slug|fields", otherChanges(d), func(c publish.Change) []string {
		return []string{c.Slug, strings.Join(c.Fields, ", ")}
	})
	withFields := func(c publish.Change) []string {
		change := c.Change
		if len(c.Fields) > 0 {
			change += ": " + strings.Join(c.Fields, ", ")
		}
		return []string{c.Slug, escapeMarkdown(c.Name), change}
	}
	writeTable(&out, "Comparisons", "slug|title|change", d.Comparisons, withFields)
	writeTable(&out, "Categories", "slug|label|change", d.Categories, withFields)
	total := 0
	for _, n := range d.Events {
		total += n
	}
	if total > 0 {
		fmt.Fprintf(&out, "### Events\n\nSubscribers would receive %s.\n\n| type | events |\n|---|---:|\n", count(total, "event"))
		for _, event := range slices.Sorted(maps.Keys(d.Events)) {
			fmt.Fprintf(&out, "| %s | %s |\n", event, thousands(d.Events[event]))
		}
	}
	_, err := io.WriteString(w, strings.TrimRight(out.String(), "\n")+"\n")
	return err
}

func writeSummary(out *strings.Builder, d *publish.Diff) {
	base := "an empty catalog"
	if d.Base != nil && d.Base.Feed != "" {
		base = escapeMarkdown(d.Base.Feed) + " (" + d.Base.UpdatedAt + ")"
	} else if d.Base != nil {
		base = fmt.Sprintf("release %d (%s)", d.Base.Release, d.Base.UpdatedAt)
	}
	if d.Refusal != "" {
		fmt.Fprintf(out, "> **`palmares import` would refuse this feed**: %s.\n\n", d.Refusal)
	}
	if len(d.Events) == 0 { // every release has one
		fmt.Fprintf(out, "Publishing this feed (%s) would change nothing, compared with %s.\n", d.UpdatedAt, base)
		return
	}
	fmt.Fprintf(out, "Publishing this feed (%s) would change the following, compared with %s:\n\n", d.UpdatedAt, base)
	tools := d.Summary.Tools
	fmt.Fprintf(out, "- **Tools**: %s added, %s updated, %s retired, %s removed, %s unchanged\n",
		thousands(tools.Created), thousands(tools.Updated), thousands(tools.Retired), thousands(tools.Removed), thousands(tools.Unchanged))
	fmt.Fprintf(out, "- **Prices and scores**: %s, %s\n", count(len(d.Prices), "price change"), count(len(d.Scores), "score change"))
	for _, row := range []struct {
		name string
		publish.Counts
	}{{"Comparisons", d.Summary.Comparisons}, {"Categories", d.Summary.Categories}} {
		fmt.Fprintf(out, "- **%s**: %s added, %s updated, %s removed, %s unchanged\n",
			row.name, thousands(row.Created), thousands(row.Updated), thousands(row.Removed), thousands(row.Unchanged))
	}
	out.WriteByte('\n')
}

// otherChanges returns the updates of fields that have no table of their own. The date
// is only mentioned if nothing else changes.
func otherChanges(d *publish.Diff) (others []publish.Change) {
	priced := map[string]bool{}
	for _, p := range d.Prices {
		priced[p.Slug] = true
	}
	history := map[string]int{}
	for _, p := range d.Backfilled {
		history[p.Slug]++
	}
	for _, c := range d.Tools {
		added := history[c.Slug]
		delete(history, c.Slug)
		if c.Change != publish.DiffUpdated {
			continue
		}
		shown := slices.DeleteFunc(slices.Clone(c.Fields), func(field string) bool {
			return field == "score" || priced[c.Slug] && (field == "price" || field == "pricing") ||
				field == "updated_at" && (len(c.Fields) > 1 || added > 0)
		})
		if added > 0 {
			shown = append(shown, historyField(added))
		}
		if len(shown) > 0 {
			c.Fields = shown
			others = append(others, c)
		}
	}
	for _, slug := range slices.Sorted(maps.Keys(history)) { // their records are otherwise unchanged
		others = append(others, publish.Change{Slug: slug, Type: record.TypeTool, Fields: []string{historyField(history[slug])}})
	}
	slices.SortFunc(others, func(a, b publish.Change) int { return strings.Compare(a.Slug, b.Slug) })
	return others
}

func historyField(added int) string { return fmt.Sprintf("price_history (%d added)", added) }

// writeTable writes a table with a heading, unless it has no rows. Slugs need no
// escaping.
func writeTable[T any](out *strings.Builder, title, columns string, rows []T, cells func(T) []string) {
	if len(rows) == 0 {
		return
	}
	names := strings.Split(columns, "|")
	fmt.Fprintf(out, "### %s (%s)\n\n| %s |\n", title, thousands(len(rows)), strings.Join(names, " | "))
	for _, name := range names {
		out.WriteString("|---")
		if name == "old" || name == "new" || name == "change" && slices.Contains(names, "old") {
			out.WriteByte(':')
		}
	}
	out.WriteString("|\n")
	for _, row := range rows[:min(len(rows), maxDiffRows)] {
		fmt.Fprintf(out, "| %s |\n", strings.Join(cells(row), " | "))
	}
	if more := len(rows) - maxDiffRows; more > 0 {
		fmt.Fprintf(out, "\n…and %s more.\n", thousands(more))
	}
	out.WriteByte('\n')
}

func formatScore(score *float64) string {
	if score == nil {
		return "–"
	}
	return strconv.FormatFloat(*score, 'f', -1, 64)
}

func formatPercent(percent *float64) string {
	if percent == nil {
		return "–"
	}
	return fmt.Sprintf("%+.1f%%", math.Round(*percent*10)/10+0) // adding 0 makes -0 positive
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

func thousands(n int) string { return lang.English.Number(n) }

// maxMarkdownText is the number of characters shown of a text from the feed.
const maxMarkdownText = 100

var entity = regexp.MustCompile(`^&#?[0-9A-Za-z]+;`)

// escapeMarkdown returns a text that is shown as it is within a table: on one line,
// without markup, mentions or characters that reorder what reviewers read.
func escapeMarkdown(s string) string {
	short := text.Truncate(s, maxMarkdownText)
	if len(short) < len(s) {
		short += "…"
	}
	var out strings.Builder
	for i, r := range short {
		switch {
		case unicode.Is(unicode.Bidi_Control, r):
		case unicode.IsControl(r) || r == '\u2028' || r == '\u2029':
			out.WriteByte(' ')
		case r == '@': // an empty comment prevents that it notifies a user
			out.WriteString("@<!-- -->")
		case strings.ContainsRune("\\`*_[]<>|~#$", r), r == '&' && entity.MatchString(short[i:]):
			out.WriteByte('\\')
			out.WriteRune(r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}
