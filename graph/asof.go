package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/ent"
	"palmares/graph/document"
	"palmares/graph/scalar"
	"palmares/internal/catalog/release"
	"palmares/internal/core/lang"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

// AsOf selects the release that an operation reads: the newest, the one with a
// number, or the newest as of a day.
type AsOf struct {
	Release int
	Date    string
}

func (a AsOf) isNewest() bool { return a == AsOf{} }

// These errors are shown on pages too, so they are translated.
const (
	badAsOf lang.Message = "as_of must be a release number (1 or higher) " +
		"or a date in the form YYYY-MM-DD (got %q)."
	noRelease       lang.Message = "No release has been published yet."
	noReleaseBefore lang.Message = "No release dated %s or earlier is available. " +
		"Available releases: %d (%s) to %d (%s)."
	releaseUnavailable lang.Message = "Release %d is not available. Available releases: %d (%s) to %d (%s)."
	releasePruned      lang.Message = "Release %s is no longer available."
	badCursor          lang.Message = "%s must be a cursor from this list in the same sort order."
	tooManyWords       lang.Message = "The search must have at most %d different words."
	tooLong            lang.Message = "%s must have at most %d characters."
)

// ParseAsOf reads a release number or a day.
func ParseAsOf(text string) (AsOf, error) {
	if number, ok := release.ParseNumber(text); ok {
		return AsOf{Release: number}, nil
	}
	if isDay(text) {
		return AsOf{Date: text}, nil
	}
	return AsOf{}, problem.New(problem.BadInput, string(badAsOf), params.Truncate(text))
}

// String returns the release as ParseAsOf reads it.
func (a AsOf) String() string { return cmp.Or(a.Date, strconv.Itoa(a.Release)) }

func isDay(text string) bool {
	_, err := scalar.UnmarshalDate(text)
	return err == nil
}

const asOfDirective = "asOf"

// asOfOperation returns the release that the @asOf directive of an operation
// selects or, without the directive, the requested one.
func asOfOperation(op *ast.OperationDefinition, variables map[string]any, requested AsOf) (asOf AsOf, err error) {
	directive := op.Directives.ForName(asOfDirective)
	if directive == nil {
		return requested, nil
	}
	if !requested.isNewest() {
		return asOf, problem.New(problem.BadInput,
			"as_of cannot be used with this query, which selects its release with @asOf.")
	}
	arguments := directive.ArgumentMap(variables)
	release, hasRelease := document.WholeNumber(arguments["release"])
	date, hasDate := arguments["date"].(string)
	switch {
	case hasRelease == hasDate:
		return asOf, problem.New(problem.BadInput, "@asOf requires exactly one of release and date.")
	case hasRelease && release < 1:
		return asOf, problem.New(problem.BadInput, "@asOf(release:) must be at least 1 (got %d).", release)
	case hasRelease:
		return AsOf{Release: release}, nil
	case !isDay(date):
		return asOf, problem.New(problem.BadInput, "@asOf(date:) must be a date in the form YYYY-MM-DD (got %q).",
			params.Truncate(date))
	}
	return AsOf{Date: date}, nil
}

// resolve returns the release that an operation reads: the newest or an earlier one.
func (e *Executor) resolve(newest *release.Release, asOf AsOf) (*release.Release, error) {
	if asOf.isNewest() {
		return newest, nil
	}
	if newest.Info == nil {
		return nil, problem.New(problem.NotFound, string(noRelease))
	}
	switch info := readableAsOf(newest, asOf); {
	case info != nil && info.ID == newest.Number():
		return newest, nil
	case info != nil && newest.Partial():
		return nil, release.ErrPartial
	case info != nil:
		return e.Earlier(newest, info), nil
	}
	readable := newest.Readable()
	oldest := readable[len(readable)-1]
	available := []any{oldest.ID, lang.Date(oldest.FeedDate), newest.Number(), lang.Date(newest.Info.FeedDate)}
	if asOf.Date != "" {
		return nil, problem.New(problem.NotFound, string(noReleaseBefore),
			append([]any{lang.Date(asOf.Date)}, available...)...)
	}
	return nil, problem.New(problem.NotFound, string(releaseUnavailable), append([]any{asOf.Release}, available...)...)
}

// readableAsOf returns the release that asOf selects, if it can be read.
func readableAsOf(newest *release.Release, asOf AsOf) *ent.Release {
	readable := newest.Readable()
	if asOf.Date != "" {
		return release.Dated(readable, asOf.Date)
	}
	if info := newest.Numbered(asOf.Release); slices.Contains(readable, info) {
		return info
	}
	return nil
}

// AsOfName is the name of AsOfParam, which selects the release that is read.
const AsOfName = "as_of"

// AsOfParam is a parameter of every interface but GraphQL, which has a directive.
var AsOfParam = params.Param{Name: AsOfName, Kind: "String"}

// ReadAsOf returns the release that the values of parameters select.
func ReadAsOf(values map[string]any) (asOf AsOf, err error) {
	if text, given := values[AsOfName].(string); given {
		return ParseAsOf(text)
	}
	return asOf, nil
}

// Directive returns the directive that selects the same release, after a space; ""
// for the newest.
func (a AsOf) Directive() string {
	switch {
	case a.Release > 0:
		return fmt.Sprintf(" @asOf(release: %d)", a.Release)
	case a.Date != "":
		return fmt.Sprintf(" @asOf(date: %q)", a.Date)
	}
	return ""
}
