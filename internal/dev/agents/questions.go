package main

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// question is a question with the calls of an agent that answers it.
type question struct {
	about, text string
	calls       []string // tools and arguments; $previous is the number of the last release but one
	path        string   // where the answer is in the last result: see read
	unordered   bool     // the order of the answer does not matter
	unknown     bool     // the catalog cannot answer it
	answer      func(f feed) []string
}

var questions = []question{
	// Finding.
	{
		about: "finding", text: "Quel est l'outil le mieux noté pour la rédaction ?",
		calls: []string{`search_tools {"category":"redaction","limit":1}`}, path: "data.*.slug data.*.score",
		answer: func(f feed) []string {
			best := f.newest().where(in("redaction"))[0]
			return []string{best.Slug, decimal(*best.Score)}
		},
	},
	{
		about: "finding", text: "Which image tools are free?",
		calls: []string{`search_tools {"category":"image","pricing":"free"}`, `search_tools {"category":"image","pricing":"gratuit"}`}, path: "data.*.slug",
		answer: func(f feed) []string {
			return slugsOf(f.newest().where(func(t tool) bool { return t.Category == "image" && t.Pricing == "gratuit" }))
		},
	},
	{
		about: "finding", text: "Quels outils de code ont au moins 7 et coûtent au plus 20 € par mois ?",
		calls: []string{`search_tools {"category":"code","score_min":7,"monthly_price_max":20}`}, path: "data.*.slug",
		answer: func(f feed) []string {
			return slugsOf(f.newest().where(func(t tool) bool {
				price, has := t.monthly()
				return t.Category == "code" && score(t) >= 7 && has && price <= 20
			}))
		},
	},
	{
		about: "finding", text: "Find a transcription tool that is billed by the hour.",
		calls: []string{`search_tools {"search":"transcription","billing_period":"hour"}`}, path: "data.*.slug",
		answer: func(f feed) []string {
			return slugsOf(f.newest().where(func(t tool) bool {
				return strings.HasSuffix(t.Price, "/heure") && f.newest().mentions(t, "transcription")
			}))
		},
	},
	{
		about: "finding", text: "Quelle note a obtenue Mésange Indgo ?",
		calls: []string{`get_tool {"slug":"mesange-indgo"}`, `get_tool {"slug":"mesange-indigo"}`}, path: "tool.score",
		answer: func(f feed) []string { return []string{decimal(score(f.newest().tools["mesange-indigo"]))} },
	},
	{
		about: "finding", text: "What does the catalog say about Greffier 8, and what does it cost?",
		calls: []string{`search {"query":"Greffier 8"}`, `fetch {"id":"tool:greffier-8"}`}, path: "title metadata.price",
		answer: func(f feed) []string {
			t := f.newest().tools["greffier-8"]
			return []string{t.Name, t.Price}
		},
	},
	{
		about: "finding", text: "Which voice tools are made for agentic engineers?",
		calls: []string{`search_tools {"category":"voice","icp":"agentic_engineer"}`, `search_tools {"category":"voix","icp":"agentic_engineer"}`}, path: "data.*.slug",
		answer: func(f feed) []string {
			return slugsOf(f.newest().where(func(t tool) bool { return t.Category == "voix" && t.ICP == "agentic-engineer" }))
		},
	},
	{
		about: "finding", text: "Which tool prepares meetings the day before?",
		calls: []string{`search_tools {"search":"meetings tomorrow"}`, `search_tools {"search":"réunions veille"}`}, path: "data.*.slug",
		answer: func(f feed) []string {
			return slugsOf(f.newest().where(func(t tool) bool { return f.newest().mentions(t, "reunions", "veille") }))
		},
	},

	// Comparing.
	{
		about: "comparing", text: "Plume ou Écritoire : lequel gagne ?",
		calls: []string{`compare_tools {"a":"plume","b":"ecritoire"}`, `compare_tools {"a":"plume","b":"ecritoire-cie"}`}, path: "published.items.0.winner",
		answer: func(f feed) []string { return []string{f.newest().winner("plume-vs-ecritoire-cie")} },
	},
	{
		about: "comparing", text: "Compare the monthly prices of L'Enclume 8, Rabot & Fils and Atelier Nova.",
		calls: []string{`search {"query":"Enclume 8, Rabot & Fils, Atelier Nova"}`, `compare_tools {"a":"enclume-8","b":"rabot-et-fils","c":"atelier-nova"}`},
		path:  "a.monthly_price b.monthly_price c.monthly_price",
		answer: func(f feed) (prices []string) {
			for _, slug := range []string{"enclume-8", "rabot-et-fils", "atelier-nova"} {
				price, _ := f.newest().tools[slug].monthly()
				prices = append(prices, decimal(price))
			}
			return prices
		},
	},
	{
		about: "comparing", text: "Quel outil a gagné le plus de comparatifs ?",
		calls: []string{`graphql_query {"query":"{comparisonGroups(by: tool, sort: wins_desc, limit: 3) {key wins}}"}`}, path: "comparisonGroups.*",
		answer: func(f feed) (best []string) {
			wins := map[string]int{}
			for _, c := range f.newest().comparisons {
				wins[c.Winner]++
			}
			all := slices.SortedFunc(maps.Keys(wins), func(a, b string) int { return cmp.Or(cmp.Compare(wins[b], wins[a]), cmp.Compare(a, b)) })
			for _, slug := range all[:3] {
				best = append(best, fmt.Sprint(slug, " ", wins[slug]))
			}
			return best
		},
	},
	{
		about: "comparing", text: "Who won between Greffier 8 and Steno Flash?",
		calls: []string{`compare_tools {"a":"greffier-8","b":"steno-flash"}`, `fetch {"id":"comparatif:greffier-8-vs-steno-flash"}`}, path: "metadata.winner",
		answer: func(f feed) []string { return []string{f.newest().winner("greffier-8-vs-steno-flash")} },
	},
	{
		about: "comparing", text: "Pourquoi Poste d'Aiguillage bat-il L'Intendante ?",
		calls: []string{`search {"query":"aiguillage intendante"}`, `fetch {"id":"comparatif:aiguillage-vs-intendante"}`}, path: "title metadata.winner",
		answer: func(f feed) []string {
			return []string{f.newest().comparisons["aiguillage-vs-intendante"].Title, f.newest().winner("aiguillage-vs-intendante")}
		},
	},

	// Prices over time.
	{
		about: "prices over time", text: "Combien coûtait Plume le 1er juin 2026 ?",
		calls: []string{`get_tool {"slug":"plume","as_of":"2026-06-01"}`}, path: "tool.price",
		answer: func(f feed) []string { return []string{f.on("2026-06-01").tools["plume"].Price} },
	},
	{
		about: "prices over time", text: "When did the price of Intendante change?",
		calls: []string{`get_tool {"slug":"intendante"}`}, path: "tool.price_history.*.changed_at",
		answer: func(f feed) (days []string) {
			for _, change := range f.newest().tools["intendante"].PriceHistory {
				days = append(days, change.ChangedAt)
			}
			return days
		},
	},
	{
		about: "prices over time", text: "Quels prix ont changé depuis le 1er septembre 2026 ?",
		calls: []string{`price_changes {"since":"2026-09-01","limit":20}`}, path: "data.*.slug", unordered: true,
		answer: func(f feed) []string { return f.repriced("2026-09-01") },
	},
	{
		about: "prices over time", text: "Which monthly prices rose most since March 2026?",
		calls: []string{`graphql_query {"query":"{movers(metric: price, from: \"2026-03-03\", direction: up, first: 3) {slug change}}"}`}, path: "movers.*",
		answer: func(f feed) []string { return top(3, movers(f.on("2026-03-03"), f.newest(), tool.monthly)) },
	},
	{
		about: "prices over time", text: "Le prix de Plmue a-t-il baissé ?",
		calls: []string{`price_changes {"slug":"plmue"}`, `price_changes {"slug":"plume","limit":1}`}, path: "data.0.before.price data.0.after.price",
		answer: func(f feed) []string {
			for i := len(f) - 1; i > 0; i-- {
				if before, after := f[i-1].tools["plume"].Price, f[i].tools["plume"].Price; before != after {
					return []string{before, after}
				}
			}
			return nil
		},
	},
	{
		about: "prices over time", text: "How did the median monthly price develop by quarter?",
		calls: []string{`graphql_query {"query":"{series(metrics: [median_monthly_price], every: quarter) {points {value}}}"}`}, path: "series.0.points.*.value",
		answer: func(f feed) []string {
			return f.byQuarter(func(e edition) string { return medianPrice(e.where(anyTool)) })
		},
	},

	// What changed.
	{
		about: "what changed", text: "Quels outils la dernière édition a-t-elle ajoutés ?",
		calls: []string{`catalog_stats {}`, `whats_new {"since_release":$previous,"types":["tool_created"]}`}, path: "data.*.slug", unordered: true,
		answer: func(f feed) (slugs []string) {
			for slug := range f.newest().tools {
				if _, had := f.previous().tools[slug]; !had {
					slugs = append(slugs, slug)
				}
			}
			return slugs
		},
	},
	{
		about: "what changed", text: "Which tool was retired last, and when?",
		calls: []string{`retired_tools {"limit":1}`}, path: "data.*.slug data.*.retired_at",
		answer: func(f feed) []string {
			last := slices.MaxFunc(slices.Collect(maps.Values(f.newest().retired)), func(a, b tool) int { return cmp.Compare(a.RetiredAt, b.RetiredAt) })
			return []string{last.Slug, last.RetiredAt}
		},
	},
	{
		about: "what changed", text: "Quelles notes ont le plus monté depuis juin 2026 ?",
		calls: []string{
			`graphql_query {"query":"{movers(metric: score, since: \"2026-06-01\", direction: up, first: 3) {slug change}}"}`,
			`graphql_query {"query":"{movers(metric: score, from: \"2026-06-01\", direction: up, first: 3) {slug change}}"}`,
		}, path: "movers.*",
		answer: func(f feed) []string {
			return top(3, movers(f.on("2026-06-01"), f.newest(), func(t tool) (float64, bool) { return score(t), t.Score != nil }))
		},
	},
	{
		about: "what changed", text: "Which code tools did the newest release update?",
		calls: []string{`list_categories {}`, `whats_new {"since_release":$previous,"category":"code","types":["tool_updated"]}`}, path: "data.*.slug", unordered: true,
		answer: func(f feed) (slugs []string) {
			for slug, now := range f.newest().tools {
				if before, had := f.previous().tools[slug]; had && now.Category == "code" && !reflect.DeepEqual(before.record, now.record) {
					slugs = append(slugs, slug)
				}
			}
			return slugs
		},
	},
	{
		about: "what changed", text: "Quels comparatifs la dernière édition a-t-elle publiés ?",
		calls: []string{`catalog_stats {}`, `whats_new {"since_release":$previous,"types":["comparatif_published"]}`}, path: "data.*.slug", unordered: true,
		answer: func(f feed) (slugs []string) {
			for slug := range f.newest().comparisons {
				if _, had := f.previous().comparisons[slug]; !had {
					slugs = append(slugs, slug)
				}
			}
			return slugs
		},
	},
	{
		about: "what changed", text: "Which prices have changed since October 1?",
		calls: []string{`price_changes {"since":"October 1"}`, `price_changes {"since":"2026-10-01"}`}, path: "data.*.slug", unordered: true,
		answer: func(f feed) []string { return f.repriced("2026-10-01") },
	},

	// Alternatives.
	{
		about: "alternatives", text: "Par quoi remplacer Bavard 7 ?",
		calls: []string{`get_tool {"slug":"bavard-7"}`}, path: "tool.alternatives.*.slug",
		answer: func(f feed) []string { return f.newest().alternatives("bavard-7", 5) },
	},
	{
		about: "alternatives", text: "List up to ten alternatives to Plume.",
		calls: []string{`graphql_query {"query":"{tool(slug: \"plume\") {alternatives(limit: 10) {slug}}}"}`}, path: "tool.alternatives.*.slug",
		answer: func(f feed) []string { return f.newest().alternatives("plume", 10) },
	},
	{
		about: "alternatives", text: "Y a-t-il une alternative gratuite à Marge Haute ?",
		calls: []string{
			`get_tool {"slug":"marge-haute"}`,
			`search_tools {"category":"redaction","pricing":"gratuit"}`,
			`search_tools {"category":"redaction","pricing":"freemium","limit":5}`,
		}, path: "data.*.slug",
		answer: func(f feed) []string {
			free := func(model string) []string {
				return slugsOf(f.newest().where(func(t tool) bool { return t.Category == "redaction" && t.Pricing == model }))
			}
			if found := free("gratuit"); found != nil {
				return found
			}
			return free("freemium")
		},
	},

	// Figures.
	{
		about: "figures", text: "How many tools are there, and what is their average score?",
		calls: []string{`catalog_stats {}`}, path: "tools_total tools_avg_score",
		answer: func(f feed) []string {
			all := f.newest().where(anyTool)
			return []string{fmt.Sprint(len(all)), mean(all, scoreOf)}
		},
	},
	{
		about: "figures", text: "Quelle catégorie a la meilleure note moyenne ?",
		calls: []string{`list_categories {}`}, path: "data.*.slug data.*.avg_score",
		answer: func(f feed) []string {
			slugs := slices.Sorted(maps.Keys(f.newest().labels))
			averages := []string{}
			for _, slug := range slugs {
				averages = append(averages, mean(f.newest().where(in(slug)), scoreOf))
			}
			return slices.Concat(slugs, averages)
		},
	},
	{
		about: "figures", text: "What is the median monthly price for each pricing model?",
		calls: []string{`graphql_query {"query":"{toolGroups(by: pricing) {key count medianMonthlyPrice}}"}`}, path: "toolGroups.*", unordered: true,
		answer: func(f feed) (groups []string) {
			for _, model := range []string{"gratuit", "freemium", "payant"} {
				all := f.newest().where(func(t tool) bool { return t.Pricing == model })
				groups = append(groups, fmt.Sprint(len(all), " ", model, " ", medianPrice(all)))
			}
			return groups
		},
	},
	{
		about: "figures", text: "Quels outils ont une obsolescence d'au moins 7 ?",
		calls: []string{`search_tools {"obsolescence_min":7}`}, path: "meta.total data.*.slug",
		answer: func(f feed) []string {
			found := f.newest().where(func(t tool) bool { return t.Obsolescence != nil && *t.Obsolescence >= 7 })
			return append([]string{fmt.Sprint(len(found))}, slugsOf(found)...)
		},
	},
	{
		about: "figures", text: "How many tools were retired for each reason?",
		calls: []string{`graphql_query {"query":"{retirementGroups(by: [reason]) {reason count}}"}`}, path: "retirementGroups.*", unordered: true,
		answer: func(f feed) (groups []string) {
			counts := map[string]int{}
			for _, t := range f.newest().retired {
				counts[t.Reason]++
			}
			for reason, n := range counts {
				groups = append(groups, fmt.Sprint(n, " ", reason))
			}
			return groups
		},
	},
	{
		about: "figures", text: "Comment la note moyenne de chaque catégorie évolue-t-elle par trimestre ?",
		calls: []string{`graphql_query {"query":"{series(metrics: [mean_score], by: category, every: quarter) {key points {value}}}"}`}, path: "series.*.points.*.value",
		answer: func(f feed) (values []string) {
			categories := map[string]bool{}
			f.byQuarter(func(e edition) string {
				for _, t := range e.tools {
					categories[t.Category] = true
				}
				return ""
			})
			for _, slug := range slices.Sorted(maps.Keys(categories)) {
				values = append(values, f.byQuarter(func(e edition) string { return mean(e.where(in(slug)), scoreOf) })...)
			}
			return values
		},
	},

	// Past releases.
	{
		about: "past releases", text: "How many tools did the first release have?",
		calls: []string{`catalog_stats {"as_of":"1"}`}, path: "tools_total",
		answer: func(f feed) []string { return []string{fmt.Sprint(len(f[0].tools))} },
	},
	{
		about: "past releases", text: "Quelle note Plume avait-elle en 2025 ?",
		calls: []string{`get_tool {"slug":"plume","as_of":"2025-06-01"}`, `get_tool {"slug":"plume","as_of":"1"}`}, path: "tool.score",
		answer: func(f feed) []string { return []string{decimal(score(f[0].tools["plume"]))} },
	},
	{
		about: "past releases", text: "Who won Plume vs Ecritoire & Cie in May 2026?",
		calls: []string{`compare_tools {"a":"plume","b":"ecritoire-cie","as_of":"2026-05-31"}`}, path: "published.items.0.winner",
		answer: func(f feed) []string { return []string{f.on("2026-05-31").winner("plume-vs-ecritoire-cie")} },
	},

	// What the catalog does not know.
	{
		about: "unknown", text: "Que vaut Grokzilla ?",
		calls: []string{`get_tool {"slug":"grokzilla"}`, `search_tools {"search":"grokzilla"}`}, path: "meta.total",
		answer: func(f feed) []string {
			return []string{fmt.Sprint(len(f.newest().where(func(t tool) bool { return f.newest().mentions(t, "grokzilla") })))}
		},
	},
	{
		about: "unknown", text: "Le catalogue connaît-il Midjourney ?",
		calls: []string{`search {"query":"Midjourney"}`}, path: "results.*.title",
		answer: func(f feed) (names []string) {
			for _, t := range f.newest().where(func(t tool) bool { return f.newest().mentions(t, "midjourney") }) {
				names = append(names, t.Name)
			}
			return names
		},
	},
	{
		about: "unknown", text: "How many employees does Plume have?", unknown: true,
		calls: []string{`graphql_schema {"search":"employees"}`}, path: "error",
		answer: func(feed) []string {
			return []string{`search: no type or query matches "employees". Try one word, such as price, score or release.`}
		},
	},
}

func anyTool(tool) bool { return true }

func scoreOf(t tool) *float64 { return t.Score }

// winner returns the name of the winner of a comparison.
func (e edition) winner(slug string) string { return e.name(e.comparisons[slug].Winner) }

// top returns the first movers, as read returns them.
func top(n int, all []mover) (first []string) {
	for _, m := range all[:min(n, len(all))] {
		first = append(first, decimal(m.change)+" "+m.slug)
	}
	return first
}
