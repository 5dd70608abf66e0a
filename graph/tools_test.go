package graph_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"palmares/ent"
	"palmares/ent/tool"
	"palmares/graph"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// onMany runs test over a catalog with many ties, with all its active tools.
func onMany(t *testing.T, test func(t *testing.T, e *graph.Executor, all []*ent.Tool)) {
	t.Helper()
	data := synthetic(t, synth.Options{Tools: 330, Seed: 3})
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		publish(t, s, data)
		test(t, newExecutor(s), s.Read.Tool.Query().Where(tool.RetiredAtIsNil()).AllX(t.Context()))
	})
}

// sorts are the orders as a person would write them down.
var sorts = map[string]func(a, b *ent.Tool) int{
	"score_desc":   func(a, b *ent.Tool) int { return scores(a, b, -1) },
	"score_asc":    func(a, b *ent.Tool) int { return scores(a, b, 1) },
	"name_asc":     func(a, b *ent.Tool) int { return strings.Compare(a.NameKey, b.NameKey) },
	"name_desc":    func(a, b *ent.Tool) int { return strings.Compare(b.NameKey, a.NameKey) },
	"updated_desc": func(a, b *ent.Tool) int { return strings.Compare(b.UpdatedAt, a.UpdatedAt) },
	"updated_asc":  func(a, b *ent.Tool) int { return strings.Compare(a.UpdatedAt, b.UpdatedAt) },
	"price_asc":    func(a, b *ent.Tool) int { return cmp.Compare(a.PriceAmount, b.PriceAmount) },
	"price_desc":   func(a, b *ent.Tool) int { return cmp.Compare(b.PriceAmount, a.PriceAmount) },
}

// scores puts tools without one last in both directions.
func scores(a, b *ent.Tool, direction int) int {
	switch {
	case a.Score == nil && b.Score == nil:
		return 0
	case a.Score == nil:
		return 1
	case b.Score == nil:
		return -1
	}
	return direction * cmp.Compare(*a.Score, *b.Score)
}

// sorted is every tool's slug in an order, ties by slug.
func sorted(all []*ent.Tool, by func(a, b *ent.Tool) int) []string {
	tools := slices.Clone(all)
	slices.SortFunc(tools, func(a, b *ent.Tool) int { return cmp.Or(by(a, b), strings.Compare(a.ID, b.ID)) })
	var slugs []string
	for _, t := range tools {
		slugs = append(slugs, t.ID)
	}
	return slugs
}

type slugged struct{ Slug string }

func slugsOf(items []slugged) []string {
	var slugs []string
	for _, item := range items {
		slugs = append(slugs, item.Slug)
	}
	return slugs
}

func TestEveryOrderByPage(t *testing.T) {
	onMany(t, func(t *testing.T, e *graph.Executor, all []*ent.Tool) {
		for sort, by := range sorts {
			var got []string
			for page := 1; page <= 8; page++ {
				answer := decoded[struct {
					Tools struct {
						Items []slugged
						Meta  struct{ Total, Page, Limit, Pages int }
					}
				}](t, ask(t, e, fmt.Sprintf(`{tools(sort: %s, page: %d, limit: 50) {items {slug} meta {total page limit pages}}}`, sort, page)))
				expect(t, sort, answer.Tools.Meta, struct{ Total, Page, Limit, Pages int }{330, page, 50, 7})
				got = append(got, slugsOf(answer.Tools.Items)...)
			}
			expect(t, sort, got, sorted(all, by))
		}
	})
}

// connection is a slice of tools as a client sees it.
type connection struct {
	ToolConnection struct {
		TotalCount int
		Nodes      []slugged
		Edges      []struct {
			Cursor string
			Node   slugged
		}
		PageInfo struct {
			HasNextPage, HasPreviousPage bool
			StartCursor, EndCursor       string
		}
	}
}

const connectionFields = `{totalCount nodes {slug} edges {cursor node {slug}} pageInfo {hasNextPage hasPreviousPage startCursor endCursor}}`

func TestEveryOrderByCursor(t *testing.T) {
	onMany(t, func(t *testing.T, e *graph.Executor, all []*ent.Tool) {
		for sort, by := range sorts {
			want := sorted(all, by)
			var forward []string
			after := ""
			for more := true; more; {
				c := decoded[connection](t, ask(t, e, fmt.Sprintf(`{toolConnection(sort: %s, first: 47%s) %s}`, sort, after, connectionFields))).ToolConnection
				forward = append(forward, slugsOf(c.Nodes)...)
				expect(t, "total", c.TotalCount, 330)
				expect(t, "previous", c.PageInfo.HasPreviousPage, after != "")
				expect(t, "cursors", []string{c.PageInfo.StartCursor, c.PageInfo.EndCursor}, []string{c.Edges[0].Cursor, c.Edges[len(c.Edges)-1].Cursor})
				after, more = fmt.Sprintf(`, after: "%s"`, c.PageInfo.EndCursor), c.PageInfo.HasNextPage
			}
			expect(t, sort+" forward", forward, want)

			var backward []string
			before := ""
			for more := true; more; {
				c := decoded[connection](t, ask(t, e, fmt.Sprintf(`{toolConnection(sort: %s, last: 47%s) %s}`, sort, before, connectionFields))).ToolConnection
				backward = append(slugsOf(c.Nodes), backward...)
				before, more = fmt.Sprintf(`, before: "%s"`, c.PageInfo.StartCursor), c.PageInfo.HasPreviousPage
			}
			expect(t, sort+" backward", backward, want)
		}
	})
}

func TestFilters(t *testing.T) {
	over := func(value *float64, least float64) bool { return value != nil && *value >= least }
	under := func(value *float64, most float64) bool { return value != nil && *value <= most }
	onMany(t, func(t *testing.T, e *graph.Executor, all []*ent.Tool) {
		for filter, keeps := range map[string]func(*ent.Tool) bool{
			`{}`:                                           func(*ent.Tool) bool { return true },
			`{categories: ["code", "chat"]}`:               func(t *ent.Tool) bool { return t.CategorySlug == "code" || t.CategorySlug == "chat" },
			`{categories: ["unknown"]}`:                    func(*ent.Tool) bool { return false },
			`{categories: []}`:                             func(*ent.Tool) bool { return false },
			`{pricings: [gratuit]}`:                        func(t *ent.Tool) bool { return t.Pricing == tool.PricingGratuit },
			`{icps: [vibe_coder, mixte]}`:                  func(t *ent.Tool) bool { return t.Icp != tool.IcpAgenticEngineer },
			`{scoreMin: 0}`:                                func(t *ent.Tool) bool { return t.Score != nil },
			`{scoreMin: 4.5, scoreMax: 8}`:                 func(t *ent.Tool) bool { return over(t.Score, 4.5) && under(t.Score, 8) },
			`{verifiabilityMin: 2, verifiabilityMax: 3.1}`: func(t *ent.Tool) bool { return over(t.Verifiability, 2) && under(t.Verifiability, 3.1) },
			`{obsolescenceMax: 5}`:                         func(t *ent.Tool) bool { return under(t.Obsolescence, 5) },
			`{priceMax: 9.5}`:                              func(t *ent.Tool) bool { return t.PriceAmount <= 9.5 },
			`{updatedSince: "2025-07-01"}`:                 func(t *ent.Tool) bool { return t.UpdatedAt >= "2025-07-01" },
			`{search: "ÉCRITOIRE"}`:                        func(t *ent.Tool) bool { return strings.Contains(t.SearchText, "ecritoire") },
			`{search: "100%_\\"}`:                          func(*ent.Tool) bool { return false },
			`{search: "_"}`:                                func(*ent.Tool) bool { return false },
			`{search: "", pricings: [payant], categories: ["voix"], scoreMin: 5}`: func(t *ent.Tool) bool {
				return t.Pricing == tool.PricingPayant && t.CategorySlug == "voix" && over(t.Score, 5)
			},
		} {
			var kept []*ent.Tool
			for _, t := range all {
				if keeps(t) {
					kept = append(kept, t)
				}
			}
			for range 2 { // the second time, the count is known
				answer := decoded[struct {
					Tools struct {
						Items []slugged
						Meta  struct{ Total int }
					}
				}](t, ask(t, e, `{tools(limit: 200, sort: name_asc, filter: `+filter+`) {items {slug} meta {total}}}`))
				expect(t, filter+" total", answer.Tools.Meta.Total, len(kept))
				expect(t, filter, slugsOf(answer.Tools.Items), sorted(kept, sorts["name_asc"])[:min(200, len(kept))])
			}
		}
	})
}

func TestAggregates(t *testing.T) {
	onMany(t, func(t *testing.T, e *graph.Executor, all []*ent.Tool) {
		type group struct {
			Key                string
			Count, Tested      int
			MinScore, MaxScore float64
		}
		want := map[string]*group{}
		bins := make([]int, 10)
		for _, row := range all {
			if row.PriceAmount > 100 {
				continue
			}
			g := want[string(row.Pricing)]
			if g == nil {
				g = &group{Key: string(row.Pricing), MinScore: 11}
				want[g.Key] = g
			}
			g.Count++
			if row.Score != nil {
				g.Tested++
				g.MinScore, g.MaxScore = min(g.MinScore, *row.Score), max(g.MaxScore, *row.Score)
				bins[min(int(*row.Score), 9)]++
			}
		}
		answer := decoded[struct {
			ToolGroups     []group
			ScoreHistogram []struct{ Count int }
		}](t, ask(t, e, `{toolGroups(by: pricing, filter: {priceMax: 100}) {key count tested minScore maxScore} scoreHistogram(filter: {priceMax: 100}) {count}}`))
		expect(t, "groups", answer.ToolGroups, []group{*want["freemium"], *want["gratuit"], *want["payant"]})
		for i, bin := range answer.ScoreHistogram {
			expect(t, fmt.Sprintf("bin %d", i), bin.Count, bins[i])
		}
		for by, first := range map[string]string{"category": "agents", "icp": "agentic-engineer", "tier": "1"} {
			keys := decoded[struct{ ToolGroups []group }](t, ask(t, e, `{toolGroups(by: `+by+`) {key count}}`)).ToolGroups
			expect(t, by, keys[0].Key, first)
		}
	})
}
