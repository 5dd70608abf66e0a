package lint

import (
	"slices"

	"palmares/internal/core/text"
)

// Severities of findings.
const (
	Error   = "error"
	Warning = "warning"
)

// Names of the rules.
const (
	Invalid             = "invalid" // found by package feed
	LintComment         = "lint-comment"
	DuplicateDomain     = "duplicate-domain"
	SimilarName         = "similar-name"
	EmptyReview         = "empty-review"
	PriceHistory        = "price-history"
	LowerScoredWinner   = "lower-scored-winner"
	SmallCategory       = "small-category"
	FutureDate          = "future-date"
	EndBeforeUpdate     = "end-before-update"
	PastEnd             = "past-end"
	Stale               = "stale"
	exampleDisable      = "# lint:disable " + SimilarName + " -- two products of one maker"
	disableInstructions = "write " + exampleDisable
)

// Rule is a check.
type Rule struct {
	Name        string
	Severity    string
	Explanation string
	always      bool // it cannot be disabled
}

// Rules are all rules.
var Rules = []Rule{
	{Invalid, Error, "The feed is not valid, so an import would refuse it. Other rules are only checked in a valid feed.", true},
	{LintComment, Error, "A comment that starts with lint: must name a rule and a reason, such as\n" + exampleDisable +
		"\nIt applies to all records of its file. Feed files have no comments.", true},
	{DuplicateDomain, Error, "Two active tools have the same domain, apart from case, a scheme, a leading www. and a trailing dot. " +
		"Most often the same tool was added twice: keep one record. Disable the rule in either file if one maker really has two tools there.", false},
	{SimilarName, Warning, "The names of two tools, active or retired, are the same apart from case, accents, spaces and punctuation, or differ by one letter " +
		"(names of at least five letters) or by two letters that are swapped. Names that differ in their digits are versions, not typos. " +
		"Check whether it is the same tool, and disable the rule in either file if it is not.", false},
	{EmptyReview, Warning, "A tool has avis_url, the page of its full review, but no sections, so search, embeddings and agents know nothing of the review. " +
		"Add the sections, or remove avis_url. A score alone is no review: a tool may have been tested without one.", false},
	{PriceHistory, Error, "The newest entry of price_history is later than the tool's updated_at, and it ends in another pricing or price than the tool has. " +
		"One of them was not updated: correct price and updated_at, or the entry. A price that is edited without an entry is fine, because the import adds the entry.", false},
	{LowerScoredWinner, Warning, "The winner of a comparison has a lower score than the other tool. Check the winner and both scores, " +
		"and disable the rule if the comparison is about something that the score does not measure.", false},
	{SmallCategory, Warning, "A category has one active tool or none, so there is nothing to compare. Add tools, or move the tool and remove the category.", false},
	{FutureDate, Error, "A date is in the future, everywhere on Earth. Readers would see changes that have not happened yet, " +
		"and a later import with the right date would be refused as older. Correct the date.", false},
	{EndBeforeUpdate, Error, "A tool was updated after the day on which it ends, according to ends_at. Correct one of the dates, or retire the tool.", false},
	{PastEnd, Warning, "The day on which a tool ends, according to ends_at, is before the date of the feed. Retire the tool, or correct ends_at.", false},
	{Stale, Warning, "For the number of days given by --stale, a tool or a comparison has not been updated, nor any of its sources checked, " +
		"or one of the sources has not been checked. Check it, and set updated_at or the source's checked_at.", false},
}

// FindRule returns the rule with a name, or nil and the name of the rule that was
// probably meant, if there is one.
func FindRule(name string) (rule *Rule, similar string) {
	if i := slices.IndexFunc(Rules, func(r Rule) bool { return r.Name == name }); i >= 0 {
		return &Rules[i], ""
	}
	var names []string
	for _, r := range Rules {
		names = append(names, r.Name)
	}
	return nil, text.Nearest(name, names)
}
