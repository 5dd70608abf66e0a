package site

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"palmares/graph"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
	"palmares/internal/core/text"
	"palmares/internal/web/chart"
)

// editionView is the front page of an edition: what a release changed.
type editionView struct {
	Changes  eventList
	*edition `json:"-"`
}

// edition is what a release changed.
type edition struct {
	editionEvents
	Figures            []editionFigure
	Sums               []string          // how the changes explain the totals
	ByCategory         []categoryFigures // most changes first
	HasMore            bool              // more than can be counted
	Readable, IsNewest bool
	Previous, Next     int // numbers of the editions before and after it, or 0
}

// editionFigure is how many changes of a kind an edition has.
type editionFigure struct {
	Name  string
	Count int
}

// categoryFigures are how many tools of a category are new or active again, are retired, and
// have another score or price, and which are first.
type categoryFigures struct {
	category
	New, Back, Retired, Scores, Prices int
	First                              []tool // those with the highest score
}

// maxEditionParts limits how many events of an edition are read, 200 at a time.
const maxEditionParts = 15

func editionPath(number string) string { return "/editions/" + number }

// Path returns the path of the edition's page.
func (r release) Path() string { return editionPath(strconv.Itoa(r.Number)) }

func (v *editionView) prepare(ctx context.Context, s *Site, r *request) (err error) {
	if v.edition, err = s.readEdition(ctx, r, v.Changes); err != nil {
		return err
	}
	if v.edition == nil {
		return problem.New(problem.NotFound, "There is no edition “%s”.", strconv.Itoa(r.variables["number"].(int)))
	}
	image := v.draw(r)
	r.figures, r.image = []*figure{image}, image.File("png")
	return nil
}

// editionOf returns the edition with a number, for a page about more than that.
func (s *Site) editionOf(ctx context.Context, r *request, number int) (*edition, error) {
	var v editionView
	if number == 0 {
		return nil, nil //nolint:nilnil // nothing has been published
	}
	if err := s.execute(ctx, r.asOf, "edition", map[string]any{"number": number}, &v); err != nil {
		return nil, err
	}
	return s.readEdition(ctx, r, v.Changes)
}

// readEdition reads the rest of the events of an edition, whose first ones are given. It
// returns nil if there are none. Those of the first edition are the whole catalog, which is
// not a change.
func (s *Site) readEdition(ctx context.Context, r *request, found eventList) (*edition, error) {
	if len(found.Nodes) == 0 {
		return nil, nil //nolint:nilnil // there is no such edition
	}
	number := found.Nodes[0].Release
	e := &edition{Previous: number - 1, HasMore: number > 1 && found.PageInfo.HasNextPage}
	if number == 1 {
		found.Nodes = found.Nodes[:1]
	}
	for part := 1; e.HasMore && part < maxEditionParts; part++ {
		more, err := s.moreChanges(ctx, r, found.PageInfo.EndCursor, map[string]any{"release": number})
		if err != nil {
			return nil, err
		}
		found.Nodes, found.PageInfo, e.HasMore = append(found.Nodes, more.Nodes...), more.PageInfo, more.PageInfo.HasNextPage
	}
	editions, err := s.byEdition(ctx, r, found.Nodes)
	if err != nil {
		return nil, err
	}
	if e.editionEvents = editions[0]; e.HasMore {
		e.Headline = "" // another change may be larger
	}
	if e.IsNewest = r.shown.Number() == number; !e.IsNewest {
		e.Next = number + 1
	}
	e.Readable = isReadable(r.shown, number)
	e.count(r)
	e.shorten(r)
	return e, s.addLeaders(ctx, r, e)
}

// addLeaders adds which tools are first in each category, if the edition can be read.
func (s *Site) addLeaders(ctx context.Context, r *request, e *edition) error {
	if !e.Readable || e.Previous == 0 {
		return nil
	}
	now, err := s.leaders(ctx, e.Number)
	if err != nil {
		return err
	}
	for i := range e.ByCategory {
		f := &e.ByCategory[i]
		f.First = now[f.Slug]
		delete(now, f.Slug)
	}
	for _, slug := range slices.Sorted(maps.Keys(now)) {
		e.ByCategory = append(e.ByCategory, categoryFigures{category: r.named(slug), First: now[slug]})
	}
	sortFigures(e.ByCategory)
	if !isReadable(r.shown, e.Previous) {
		return nil
	}
	before, err := s.leaders(ctx, e.Previous)
	var sentences []string
	for _, f := range e.ByCategory {
		isNew := func(t tool) bool {
			return !slices.ContainsFunc(before[f.Slug], func(b tool) bool { return b.Slug == t.Slug })
		}
		// If three shared first place, others may have, too.
		if shared := len(before[f.Slug]); shared > 0 && shared < 3 && len(f.First) == 1 && isNew(f.First[0]) {
			sentences = append(sentences, r.lang.Text("%s is now first in %s.", f.First[0].Name, f.Label))
		}
	}
	if len(sentences) <= maxNamedInHeadline {
		e.Headline = strings.TrimSpace(e.Headline + " " + lang.Typeset(strings.Join(sentences, " ")))
	}
	return err
}

// leaders returns the tools with the highest score in each category of a release.
func (s *Site) leaders(ctx context.Context, number int) (map[string][]tool, error) {
	var found struct{ Categories []category }
	err := s.execute(ctx, graph.AsOf{Release: number}, "leaders", nil, &found)
	first := map[string][]tool{}
	for _, c := range found.Categories {
		for _, t := range c.Tools {
			if t.Score != nil && *t.Score == *c.Tools[0].Score {
				first[c.Slug] = append(first[c.Slug], t)
			}
		}
	}
	return first, err
}

// HasFirst reports whether it is known which tools are first.
func (e *edition) HasFirst() bool {
	return slices.ContainsFunc(e.ByCategory, func(f categoryFigures) bool { return len(f.First) > 0 })
}

// ChangedIn describes the changes of a category, such as "1 new · 2 scores".
func (r *request) ChangedIn(f categoryFigures) string {
	var parts []string
	for _, part := range []struct {
		count   int
		message lang.Message
	}{{f.New, "%d new|%d new"}, {f.Back, "%d active again|%d active again"}, {f.Retired, "%d closed|%d closed"}, {f.Scores, "%d score|%d scores"}, {f.Prices, "%d price|%d prices"}} {
		if part.count > 0 {
			parts = append(parts, r.lang.Plural(part.count, part.message))
		}
	}
	return cmp.Or(strings.Join(parts, " · "), noScore)
}

// sortFigures sorts categories, those with the most changes first, then by label.
func sortFigures(all []categoryFigures) {
	slices.SortFunc(all, func(a, b categoryFigures) int {
		return cmp.Or(b.total()-a.total(), strings.Compare(text.Fold(a.Label), text.Fold(b.Label)), strings.Compare(a.Slug, b.Slug))
	})
}

// count counts the lines of the groups before they are shortened.
func (e *edition) count(r *request) {
	counts, places, others := map[string]int{}, map[string]int{}, 0
	for _, g := range e.Groups {
		kind := changeGroups[g.kind].kind
		for _, line := range g.Lines {
			counts[kind]++
			others++
			counts[kind+" "+line.change().Direction]++
			if line.Category == nil {
				continue
			}
			at, known := places[line.Category.Slug]
			if !known {
				at = len(e.ByCategory)
				places[line.Category.Slug] = at
				e.ByCategory = append(e.ByCategory, categoryFigures{category: *line.Category})
			}
			f := &e.ByCategory[at]
			*map[string]*int{toolCreated: &f.New, returned: &f.Back, toolRetired: &f.Retired, scoreChanged: &f.Scores, priceChanged: &f.Prices}[kind]++
		}
	}
	sortFigures(e.ByCategory)
	removedComparisons := counts["comparatif_removed"]
	for _, f := range []struct {
		message lang.Message
		count   int
	}{
		{"new tool|new tools", counts[toolCreated]},
		{"tool active again|tools active again", counts[returned]},
		{"retired tool|retired tools", counts[toolRetired]},
		{"score up|scores up", counts[scoreChanged+" up"]},
		{"score down|scores down", counts[scoreChanged+" down"]},
		{"price increase|price increases", counts[priceChanged+" up"]},
		{"price decrease|price decreases", counts[priceChanged+" down"]},
		{"new comparison|new comparisons", counts["comparatif_published"]},
		{"removed tool|removed tools", counts[toolRemoved]},
		{"tool removed from the graveyard|tools removed from the graveyard", counts[graveRemoved]},
		{"other score change|other score changes", counts[scoreChanged+" "]},
		{"other price change|other price changes", counts[priceChanged+" "]},
		{"removed comparison|removed comparisons", removedComparisons},
	} {
		if others -= f.count; f.count > 0 {
			e.Figures = append(e.Figures, editionFigure{r.lang.Plural(f.count, f.message), f.count})
		}
	}
	if others > 0 {
		e.Figures = append(e.Figures, editionFigure{r.lang.Plural(others, "other change|other changes"), others})
	}
	if e.Totals != nil && !e.HasMore {
		e.addSum(r, "%d tool|%d tools", e.Totals.Tools, []part{{"%d new|%d new", counts[toolCreated]}, {"%d active again|%d active again", counts[returned]}, {"%d retired|%d retired", -counts[toolRetired]}, {"%d removed|%d removed", -counts[toolRemoved]}})
		e.addSum(r, "%d retired tool|%d retired tools", e.Totals.Retired, []part{{"%d retired|%d retired", counts[toolRetired]}, {"%d active again|%d active again", -counts[returned]}, {"%d removed|%d removed", -counts[graveRemoved]}})
		e.addSum(r, "%d comparison|%d comparisons", e.Totals.Comparisons, []part{{"%d new|%d new", counts["comparatif_published"]}, {"%d removed|%d removed", -removedComparisons}})
	}
}

// part is what adds to a total, or reduces it.
type part struct {
	message lang.Message
	count   int
}

// addSum adds how a total follows from that of the previous edition, such as "44 + 4 new =
// 48 tools", unless nothing changed it.
func (e *edition) addSum(r *request, message lang.Message, total int, parts []part) {
	before, sum := total, ""
	for _, p := range parts {
		before -= p.count
		if count := max(p.count, -p.count); count > 0 {
			sum += map[bool]string{true: " + ", false: " − "}[p.count > 0] + r.lang.Plural(count, p.message)
		}
	}
	if sum != "" {
		e.Sums = append(e.Sums, r.lang.Number(before)+sum+" = "+r.lang.Plural(total, message))
	}
}

func (f categoryFigures) total() int { return f.New + f.Back + f.Retired + f.Scores + f.Prices }

// Summary returns the figures that are not zero in a line, such as "2 new tools · 1 price
// cut".
func (e *edition) Summary() string {
	var parts []string
	after := map[bool]string{true: "+ ", false: " "}[e.HasMore]
	for _, f := range e.Figures {
		parts = append(parts, strconv.Itoa(f.Count)+after+f.Name)
	}
	return strings.Join(parts, " · ")
}

// draw returns the figures as an image, which other sites show with a link to the page.
func (e *edition) draw(r *request) *figure {
	f := newFigure(r, "edition", "")
	f.Title = r.lang.Text("Edition %d of %s, %s", e.Number, r.service.ServiceName, r.lang.DayOf(e.Date))
	var tiles chart.Tiles
	for _, one := range e.Figures {
		tiles = append(tiles, chart.Tile{Label: one.Name, Text: r.lang.Number(one.Count)})
	}
	f.Content = tiles
	return f
}
