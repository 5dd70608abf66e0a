// Package lint finds what is probably wrong in a valid catalog: start with Check (report.go).
// Its rules are pure: they see records, the comments beside them and the date of today.
package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/idna"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/record"
)

// checker collects records and checks them.
type checker struct {
	today, oldest string
	date          string // of the feed
	findings      []*Finding
	disabled      map[int][]string // names of rules, by line of the feed

	domains     map[string]place // the first tool of each domain
	names       []name
	scores      map[string]*float64 // of all tools, by slug
	members     map[string]int      // active tools, by category
	ends        map[place]string
	categories  []place
	comparisons []comparison

	compared int // pairs of names
}

// place is a record and its line.
type place struct {
	line       int
	kind, slug string
}

type comparison struct {
	place
	winner, loser string
}

func newChecker(opts Options) *checker {
	c := &checker{
		today: opts.Today.Format(time.DateOnly), disabled: map[int][]string{},
		domains: map[string]place{}, scores: map[string]*float64{}, members: map[string]int{}, ends: map[place]string{},
	}
	if opts.Stale > 0 {
		c.oldest = opts.Today.AddDate(0, 0, -opts.Stale).Format(time.DateOnly)
	}
	return c
}

// header checks the header of a feed, which is its first line.
func (c *checker) header(header record.Header, comments []feed.Comment) {
	at := place{line: 1, kind: record.TypeFeed}
	c.readComments(at, comments)
	c.checkDate(at, "updated_at", header.UpdatedAt)
	c.date = header.UpdatedAt
}

// record checks a record in a line of the feed, with the comments of its file.
func (c *checker) record(line int, rec record.Record, comments []feed.Comment) {
	at := place{line, rec.RecordType(), rec.RecordSlug()}
	c.readComments(at, comments)
	switch rec := rec.(type) {
	case *record.Category:
		c.categories = append(c.categories, at)
	case *record.Tool:
		c.checkTool(at, rec)
	case *record.Retired:
		c.checkDate(at, "retired_at", rec.RetiredAt)
		c.names = append(c.names, newName(at, rec.Name))
		c.scores[rec.Slug] = rec.Score
	case *record.Comparison:
		c.checkDate(at, "updated_at", rec.UpdatedAt)
		c.checkStale(at, "updated_at", rec.UpdatedAt)
		loser := rec.ToolA
		if rec.Winner == rec.ToolA {
			loser = rec.ToolB
		}
		c.comparisons = append(c.comparisons, comparison{at, rec.Winner, loser})
	}
}

// finish checks what involves several records, and returns all findings in the order of
// the feed, without those that comments disable.
func (c *checker) finish() []*Finding {
	c.checkNames()
	for at, end := range c.ends {
		if end < c.date {
			c.add(at, "ends_at", PastEnd, "the tool ended on %s, before the date of the feed, %s; retire it, or correct ends_at", end, c.date)
		}
	}
	for _, category := range c.categories {
		switch c.members[category.slug] {
		case 0:
			c.add(category, "slug", SmallCategory, "the category has no active tools; add some, or remove it")
		case 1:
			c.add(category, "slug", SmallCategory, "the category has one active tool; add others, or move the tool and remove the category")
		}
	}
	for _, duel := range c.comparisons {
		winner, loser := c.scores[duel.winner], c.scores[duel.loser]
		if winner != nil && loser != nil && *winner < *loser {
			c.add(duel.place, "winner", LowerScoredWinner, "%s wins with a score of %v against %v for %s; check the winner and both scores",
				record.Quote(duel.winner), *winner, *loser, record.Quote(duel.loser))
		}
	}
	found := slices.DeleteFunc(c.findings, func(f *Finding) bool {
		return slices.Contains(c.disabled[f.number], f.Rule) || slices.Contains(c.disabled[f.other], f.Rule)
	})
	slices.SortStableFunc(found, func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.Path, b.Path), cmp.Compare(a.comment, b.comment), cmp.Compare(a.Message, b.Message))
	})
	return found
}

func (c *checker) checkTool(at place, t *record.Tool) {
	c.names = append(c.names, newName(at, t.Name))
	c.scores[t.Slug] = t.Score
	c.members[t.Category]++
	domain := normalizeDomain(t.Domain)
	if first, taken := c.domains[domain]; taken {
		c.addPair(at, first, "domain", DuplicateDomain, "%s is also the domain of %s; keep one of the records", record.Quote(t.Domain), first)
	} else {
		c.domains[domain] = at
	}
	if t.AvisURL != nil && len(t.Sections) == 0 {
		c.add(at, "avis_url", EmptyReview, "the tool has a review, but no sections; add them, or remove avis_url")
	}
	c.checkDate(at, "updated_at", t.UpdatedAt)
	switch {
	case t.EndsAt == nil:
	case *t.EndsAt < t.UpdatedAt:
		c.add(at, "ends_at", EndBeforeUpdate, "the tool ends on %s, but was updated on %s; correct one of the dates, or retire the tool", *t.EndsAt, t.UpdatedAt)
	default:
		c.ends[at] = *t.EndsAt
	}
	touched := t.UpdatedAt
	for i, source := range t.Sources {
		path := fmt.Sprintf("sources[%d].checked_at", i)
		c.checkDate(at, path, source.CheckedAt)
		if source.CheckedAt < c.oldest {
			c.add(at, path, Stale, "%s was last checked here on %s; check it again, and set checked_at", source.Field, source.CheckedAt)
		}
		touched = max(touched, source.CheckedAt)
	}
	c.checkStale(at, "updated_at", touched)
	newest := 0 // a feed lists the newest first
	for i, change := range t.PriceHistory {
		c.checkDate(at, fmt.Sprintf("price_history[%d].changed_at", i), change.ChangedAt)
		if change.ChangedAt > t.PriceHistory[newest].ChangedAt {
			newest = i
		}
	}
	if len(t.PriceHistory) == 0 {
		return
	}
	last := t.PriceHistory[newest]
	if last.ChangedAt <= t.UpdatedAt || last.Pricing == t.Pricing && last.Price == t.Price {
		return
	}
	c.add(at, fmt.Sprintf("price_history[%d].price", newest), PriceHistory,
		"the entry of %s ends in %s (%s), but the tool, updated on %s, has %s (%s); correct price and updated_at, or the entry",
		last.ChangedAt, record.Quote(last.Price), last.Pricing, t.UpdatedAt, record.Quote(t.Price), t.Pricing)
}

func (c *checker) checkDate(at place, path, date string) {
	if date > c.today {
		c.add(at, path, FutureDate, "%s is in the future; correct it", date)
	}
}

func (c *checker) checkStale(at place, path, date string) {
	if date < c.oldest {
		c.add(at, path, Stale, "the record was last updated or checked on %s; check it, and set updated_at", date)
	}
}

func (c *checker) add(at place, path, rule, format string, args ...any) {
	c.addPair(at, place{}, path, rule, format, args...)
}

// addPair adds a finding that a comment at either of two records can disable.
func (c *checker) addPair(at, other place, path, rule, format string, args ...any) {
	found, _ := FindRule(rule)
	c.findings = append(c.findings, &Finding{
		number: at.line, other: other.line, Path: path, Record: at.String(), Rule: rule, Severity: found.Severity, Message: fmt.Sprintf(format, args...),
	})
}

// String names a record, such as tool "plume".
func (p place) String() string {
	if p.slug == "" { // the header
		return p.kind
	}
	return p.kind + " " + record.Quote(p.slug)
}

// readComments reads which rules the comments of a file disable.
func (c *checker) readComments(at place, comments []feed.Comment) {
	for _, comment := range comments {
		directive, ok := strings.CutPrefix(comment.Text, "lint:")
		if !ok {
			continue
		}
		rule, problem := readDisable(directive)
		if problem != "" {
			c.add(at, "", LintComment, "%s", problem)
			c.findings[len(c.findings)-1].comment = comment.Line
			continue
		}
		c.disabled[at.line] = append(c.disabled[at.line], rule)
	}
}

func readDisable(directive string) (rule, problem string) {
	arguments, ok := strings.CutPrefix(directive, "disable ")
	name, rest, _ := strings.Cut(strings.TrimSpace(arguments), " ")
	reason, hasReason := strings.CutPrefix(strings.TrimSpace(rest), "--")
	known, similar := FindRule(name)
	switch {
	case !ok:
		return "", "the comment is not understood; " + disableInstructions
	case known == nil && similar != "":
		return "", fmt.Sprintf("there is no rule %s; did you mean %s?", record.Quote(name), similar)
	case known == nil:
		return "", fmt.Sprintf("there is no rule %s; palmares lint --explain all lists them", record.Quote(name))
	case known.always:
		return "", fmt.Sprintf("the rule %s cannot be disabled; correct what it finds", name)
	case !hasReason || strings.TrimSpace(reason) == "":
		return "", "a reason is required; " + disableInstructions
	}
	return name, ""
}

// normalizeDomain removes what does not distinguish domains.
func normalizeDomain(domain string) string {
	domain = strings.ToLower(strings.TrimSpace(domain))
	if _, rest, hasScheme := strings.Cut(domain, "://"); hasScheme {
		domain = rest
	}
	if end := strings.IndexAny(domain, "/?#:"); end >= 0 {
		domain = domain[:end]
	}
	domain = strings.TrimPrefix(strings.TrimRight(domain, "."), "www.")
	if decoded, err := idna.ToUnicode(domain); err == nil { // xn--caf-dma is café
		return decoded
	}
	return domain
}
