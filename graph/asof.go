package graph

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/ent"
	"palmares/graph/model"
	"palmares/internal/catalog/journal"
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
	number, err := strconv.Atoi(text)
	switch {
	case releaseNumber.MatchString(text) && err == nil:
		return AsOf{Release: number}, nil
	case isDay(text):
		return AsOf{Date: text}, nil
	}
	return AsOf{}, problem.New(problem.BadInput, string(badAsOf), params.Truncate(text))
}

var releaseNumber = regexp.MustCompile(`^[1-9][0-9]{0,8}$`)

// String returns the release as ParseAsOf reads it.
func (a AsOf) String() string { return cmp.Or(a.Date, strconv.Itoa(a.Release)) }

func isDay(text string) bool {
	day, err := time.Parse(time.DateOnly, text)
	return err == nil && day.Year() > 0
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
	release, hasRelease := wholeNumber(arguments["release"])
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
	readable := newest.Readable() // newest first
	for i, info := range readable {
		if info.ID == asOf.Release || asOf.Date != "" && info.FeedDate <= asOf.Date {
			if i == 0 {
				return newest, nil
			}
			return e.catalog.Earlier(newest, info), nil
		}
	}
	oldest := readable[len(readable)-1]
	available := []any{oldest.ID, lang.Date(oldest.FeedDate), newest.Number(), lang.Date(newest.Info.FeedDate)}
	if asOf.Date != "" {
		return nil, problem.New(problem.NotFound, string(noReleaseBefore),
			append([]any{lang.Date(asOf.Date)}, available...)...)
	}
	return nil, problem.New(problem.NotFound, string(releaseUnavailable), append([]any{asOf.Release}, available...)...)
}

// Releases lists the releases up to the one being read.
func (queryResolver) Releases(
	ctx context.Context, first *int, after *string, last *int, before *string,
) (*model.ReleaseConnection, error) {
	r := readerFrom(ctx)
	releases := &list[*ent.Release, *model.Release]{
		name: "releases", items: r.release.All, nodes: r.readReleases,
		cursors: cursors[*ent.Release]{
			position: func(release *ent.Release) []any { return []any{release.ID} },
			compare: func(position []any) (func(*ent.Release) int, bool) {
				if len(position) != 1 {
					return nil, false
				}
				number, ok := position[0].(float64)
				return func(release *ent.Release) int { return cmp.Compare(number, float64(release.ID)) }, ok
			},
		},
	}
	c, err := releases.connection(ctx, first, after, last, before)
	return &model.ReleaseConnection{
		Edges: edgesOf[model.ReleaseEdge](c), Nodes: c.nodes, PageInfo: c.info, TotalCount: c.total,
	}, err
}

func (r *reader) readReleases(_ context.Context, releases []*ent.Release, _ selection) ([]*model.Release, error) {
	historyFrom := r.release.HistoryFrom()
	return mapSlice(releases, func(release *ent.Release) *model.Release {
		return &model.Release{
			ID: r.pin(releaseID(release.ID)), Number: release.ID,
			Date: release.FeedDate, PublishedAt: release.ImportedAt,
			Readable: release.ID >= historyFrom, Stats: statistics(release),
		}
	}), nil
}

func (queryResolver) ToolVersions(ctx context.Context, slug string, limit int) (*model.ToolVersions, error) {
	if err := cmp.Or(
		checkText("slug", slug, maxSlugText), params.CheckRange("limit", limit, 1, maxPageSize),
	); err != nil {
		return nil, err
	}
	found, err := readerFrom(ctx).versions(ctx, []string{slug}, limit)
	if err != nil || len(found[slug]) == 0 {
		return nil, err
	}
	return &model.ToolVersions{Slug: slug, Versions: found[slug]}, nil
}

// Versions returns the first items of the list, which was read with the largest
// limit in the operation.
func (toolResolver) Versions(_ context.Context, t *model.Tool, limit int) ([]*model.ToolVersion, error) {
	return t.Versions[:min(limit, len(t.Versions))], nil
}

// Versions does the same for a retired tool.
func (retiredToolResolver) Versions(_ context.Context, t *model.RetiredTool, limit int) ([]*model.ToolVersion, error) {
	return t.Versions[:min(limit, len(t.Versions))], nil
}

// versions returns the newest versions of each tool from the journal, up to the
// release being read.
func (r *reader) versions(ctx context.Context, slugs []string, limit int) (map[string][]*model.ToolVersion, error) {
	versions := map[string][]*model.ToolVersion{}
	if r.release.Info == nil || len(slugs) == 0 {
		return versions, nil
	}
	events, err := r.journalOf(slugs).Versions(ctx, limit)
	if err != nil {
		return nil, err
	}
	until := map[string]*int{} // the release that ended a tool's next version
	for _, e := range slices.Backward(events) {
		v := &model.ToolVersion{
			FirstRelease: e.Release, LastRelease: until[e.Slug],
			Date: r.release.All[r.release.Number()-e.Release].FeedDate,
			Type: changeType(e.Type), Fields: e.Fields,
			Before: json.RawMessage(e.Before), After: json.RawMessage(e.After),
		}
		last := e.Release - 1
		until[e.Slug] = &last
		if e.Type != journal.EventToolRemoved && len(versions[e.Slug]) < limit {
			versions[e.Slug] = append(versions[e.Slug], v)
		}
	}
	return versions, nil
}
