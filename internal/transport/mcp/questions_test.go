package mcp

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/core/text"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

const (
	maxCalls  = 3
	maxTokens = 4_000
	// bytesPerToken is the least that OpenAI's tokenizer o200k reaches with a result of
	// these calls (2.4; on average 3.1), so that no count is too low.
	bytesPerToken = 2.4
)

// question is a question about the demo catalog with the calls of an agent that answers it.
type question struct {
	text  string
	steps []step
}

type step struct {
	call string // tool and arguments
	path string // to all values of the structured content that want has; if empty, want is a part of the text
	want string // after the last call, the answer; before, what the next call needs
}

// Agents answer questions with few calls and tokens. They can make each call with what the
// list of tools, the instructions, the question and earlier results say.
func TestAgentsAnswerQuestions(t *testing.T) {
	testkit.EachInFull(t, func(t *testing.T, s *store.Store) {
		c := newCatalog(t, s)
		instructed := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).Body.String() +
			c.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`).Body.String()
		for _, q := range questions {
			t.Run(q.text, func(t *testing.T) {
				known, tokens := text.Fold(instructed+q.text), 0
				for _, s := range q.steps {
					check.Equal(t, unknownWord(s.call, known), "", "%s: agents do not know", s.call)
					name, arguments, _ := strings.Cut(s.call, " ")
					got := c.tool(t, name, arguments)
					s.check(t, got)
					// Clients show a model either the text or the structured content.
					tokens += int(math.Ceil(float64(max(len(got.text()), len(got.StructuredContent))) / bytesPerToken))
					known += text.Fold(got.text())
				}
				check.True(t, len(q.steps) <= maxCalls && tokens <= maxTokens, "got %d calls and %d tokens, want at most %d and %d", len(q.steps), tokens, maxCalls, maxTokens)
			})
		}
	})
}

var (
	date   = regexp.MustCompile(`\d{4}-\d\d-\d\d`)
	chosen = regexp.MustCompile(`"(search|query)":"[^{"][^"]*"`) // words to search for
	word   = regexp.MustCompile(`[\pL_][\pL\d_]*`)               // and no numbers, which agents compute
)

// unknownWord returns a word of a call that is not in a folded text. Agents choose words
// to search for themselves, and can write a date if they see the form of dates.
func unknownWord(call, known string) string {
	call = chosen.ReplaceAllString(date.ReplaceAllString(call, "YYYY-MM-DD"), "")
	for _, one := range word.FindAllString(text.Fold(call), -1) {
		if !strings.Contains(known, one) {
			return one
		}
	}
	return ""
}

// check checks the result of a call.
func (s step) check(t *testing.T, got called) {
	t.Helper()
	structured := string(got.StructuredContent)
	empty := strings.HasPrefix(structured, `{"data":[]`) || strings.HasPrefix(structured, `{"results":[]`)
	check.True(t, !empty || strings.Contains(structured, `"hint":"`), "%s: got an empty list without a hint", s.call)
	if s.path == "" {
		check.Contains(t, got.text(), s.want, s.call)
		return
	}
	var whole any
	check.OK(t, json.Unmarshal(got.StructuredContent, &whole)) // errors have none
	var values []string
	for path := range strings.FieldsSeq(s.path) {
		values = append(values, read(whole, path)...)
	}
	check.Equal(t, strings.Join(values, ", "), s.want, "%s: at: %s", s.call, s.path)
	for _, value := range values { // models may read only the text
		check.True(t, value == "null" || strings.Contains(got.text(), value), "%s: got %q only as structured content, want it in the text too", s.call, value)
	}
}

// read returns the values at a path such as data.slug, of each item of lists.
func read(value any, path string) (values []string) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			values = append(values, read(item, path)...)
		}
		return values
	case map[string]any:
		name, rest, _ := strings.Cut(path, ".")
		if member, has := value[name]; has {
			return read(member, rest)
		}
		return nil
	case nil:
		return []string{"null"}
	}
	return []string{fmt.Sprint(value)}
}

var questions = []question{
	// Finding.
	{"Quel est l'outil le mieux noté pour la rédaction ?", []step{
		{`search_tools {"category":"redaction","limit":1}`, "data.slug data.score", "ecritoire-cie, 8.7"},
	}},
	{"Which image tools are free?", []step{
		{`search_tools {"category":"image","pricing":"free"}`, "", "gratuit, freemium, payant"},
		{`search_tools {"category":"image","pricing":"gratuit"}`, "data.slug", "fusain-libre"},
	}},
	{"Quels outils de code ont au moins 7 et coûtent au plus 20 € par mois ?", []step{
		{`search_tools {"category":"code","score_min":7,"price_max":20}`, "data.slug", "atelier-nova, rabot-et-fils"},
	}},
	{"Find a transcription tool that is billed by the hour.", []step{
		{`search_tools {"search":"transcription","billing_period":"hour"}`, "data.slug", "greffier-8"},
	}},
	{"Quelle note a obtenue Mésange Indgo ?", []step{
		{`get_tool {"slug":"mesange-indgo"}`, "", "mesange-indigo"},
		{`get_tool {"slug":"mesange-indigo"}`, "tool.score", "8.8"},
	}},
	{"What does the catalog say about Greffier 8, and what does it cost?", []step{
		{`search {"query":"Greffier 8"}`, "", `"id":"tool:greffier-8"`},
		{`fetch {"id":"tool:greffier-8"}`, "title metadata.price", "Greffier 8, 0.5 €/heure"},
	}},
	{"Which voice tools are made for agentic engineers?", []step{
		{`search_tools {"category":"voice","icp":"agentic_engineer"}`, "", "voix"},
		{`search_tools {"category":"voix","icp":"agentic_engineer"}`, "data.slug", "greffier-8, standard-ouvert"},
	}},
	{"Which tool prepares meetings the day before?", []step{
		{`search_tools {"search":"meetings tomorrow"}`, "", "try French words"},
		{`search_tools {"search":"réunions veille"}`, "data.slug", "sous-main"},
	}},

	// Comparing.
	{"Plume ou Écritoire : lequel gagne ?", []step{
		{`compare_tools {"a":"plume","b":"ecritoire"}`, "", "ecritoire-cie"},
		{`compare_tools {"a":"plume","b":"ecritoire-cie"}`, "published.items.winner", "Écritoire & Cie"},
	}},
	{"Compare the monthly prices of L'Enclume 8, Rabot & Fils and Atelier Nova.", []step{
		{`search {"query":"Enclume 8, Rabot & Fils, Atelier Nova"}`, "", `"id":"tool:enclume-8"`},
		{`compare_tools {"a":"enclume-8","b":"rabot-et-fils","c":"atelier-nova"}`, "a.monthly_price b.monthly_price c.monthly_price", "29, 20, 20"},
	}},
	{"Quel outil a gagné le plus de comparatifs ?", []step{
		{`graphql_query {"query":"{comparisonGroups(by: tool, sort: wins_desc, limit: 3) {key wins}}"}`, "comparisonGroups.key comparisonGroups.wins", "aiguillage, aquatinte-4, atelier-nova, 1, 1, 1"},
	}},
	{"Who won between Greffier 8 and Steno Flash?", []step{
		{`compare_tools {"a":"greffier-8","b":"steno-flash"}`, "b.reason published.items.winner", "acquis, Greffier 8"},
	}},
	{"Pourquoi Poste d'Aiguillage bat-il L'Intendante ?", []step{
		{`search {"query":"aiguillage intendante"}`, "", `"id":"comparatif:aiguillage-vs-intendante"`},
		{`fetch {"id":"comparatif:aiguillage-vs-intendante"}`, "title metadata.winner", "Poste d'Aiguillage ou L'Intendante ?, Poste d'Aiguillage"},
	}},

	// Prices over time.
	{"Combien coûtait Plume le 1er juin 2026 ?", []step{
		{`get_tool {"slug":"plume","as_of":"2026-06-01"}`, "tool.price", "24,90 €/mois"},
	}},
	{"When did the price of Intendante change?", []step{
		{`get_tool {"slug":"intendante"}`, "tool.price_history.changed_at", "2026-09-01, 2025-12-08, 2025-03-17"},
	}},
	{"Quels prix ont changé depuis le 1er septembre 2026 ?", []step{
		{`price_changes {"since":"2026-09-01","limit":20}`, "data.slug", "plume, intendante, greffier-8, cafe-perroquet"},
	}},
	{"Which monthly prices rose most since March 2026?", []step{
		{`graphql_query {"query":"{movers(metric: price, from: \"2026-03-03\", direction: up, first: 3) {slug change}}"}`, "movers.slug movers.change", "tamis-et-pepites, enclume-8, mirage-huile, 30, 10, 10"},
	}},
	{"Which prices changed in summer 2026?", []step{
		{`price_changes {"since":"2026-06-01","until":"2026-09-01"}`, "data.slug", "pigment-braise, bosco-et-matelots, ecritoire-cie"},
		{`whats_new {"since":"2026-06-01","until":"2026-09-01","types":["price_changed"]}`, "data.slug", "pigment-braise, bosco-et-matelots, ecritoire-cie"},
	}},
	{"How many tools cost at most €10 a month?", []step{
		{`search_tools {"price_max":10,"limit":1}`, "meta.total", "15"},
	}},
	{"Le prix de Plmue a-t-il baissé ?", []step{
		{`price_changes {"slug":"plmue"}`, "", "Did you mean plume?"},
		{`graphql_query {"query":"{changes(slug: \"plmue\") {nodes {type}}}"}`, "hint", `slug: nothing matches "plmue". Did you mean plume?`},
		{`price_changes {"slug":"plume","limit":1}`, "data.before.price data.after.price", "24,90 €/mois, 19,90 €/mois"},
	}},
	{"How did the median monthly price develop by quarter?", []step{
		{`graphql_query {"query":"{series(metrics: [median_monthly_price], every: quarter) {points {value}}}"}`, "series.points.value", "18, 17, 18, 16"},
	}},

	// What changed.
	{"Quels outils la dernière édition a-t-elle ajoutés ?", []step{
		{`catalog_stats {}`, "", "Release 8 of 2026-11-10"},
		{`whats_new {"since_release":7,"types":["tool_created"]}`, "data.slug", "trame-72, sous-main, phoneme-21, merlette"},
	}},
	{"Which tool was retired last, and when?", []step{
		{`retired_tools {"limit":1}`, "data.slug data.retired_at", "vigie-3, 2026-08-21"},
	}},
	{"Quelles notes ont le plus monté depuis juin 2026 ?", []step{
		{`graphql_query {"query":"{movers(metric: score, since: \"2026-06-01\", direction: up, first: 3) {slug change}}"}`, "", "Its arguments: metric, from, to, "},
		{`graphql_query {"query":"{movers(metric: score, from: \"2026-06-01\", direction: up, first: 3) {slug change}}"}`, "movers.slug movers.change", "bruit-et-parole, plume, cafe-perroquet, 0.6, 0.6, 0.5"},
	}},
	{"Which code tools did the newest release update?", []step{
		{`list_categories {}`, "data.slug", "agents, chat, code, image, recherche, redaction, video, voix"},
		{`whats_new {"since_release":7,"category":"code","types":["tool_updated"]}`, "data.slug", "enclume-8, atelier-nova"},
	}},
	{"Quels comparatifs la dernière édition a-t-elle publiés ?", []step{
		{`catalog_stats {}`, "", "Release 8 of 2026-11-10"},
		{`whats_new {"since_release":7,"types":["comparatif_published"]}`, "data.slug", "clap-aout-vs-bobine-fils, aquatinte-4-vs-fusain-libre"},
	}},
	{"Which prices have changed since October 1?", []step{
		{`price_changes {"since":"October 1"}`, "", "in the form YYYY-MM-DD"},
		{`price_changes {"since":"2026-10-01"}`, "data.slug", "plume"},
	}},

	// Alternatives.
	{"Par quoi remplacer Bavard 7 ?", []step{
		{`get_tool {"slug":"bavard-7"}`, "tool.alternatives.slug", "dis-moi-leon, cafe-perroquet, mesange-indigo, double-cloison, bruit-et-parole"},
	}},
	{"List up to ten alternatives to Plume.", []step{
		{`graphql_query {"query":"{tool(slug: \"plume\") {alternatives(limit: 10) {slug}}}"}`, "tool.alternatives.slug", "relire-svp, ecritoire-cie, brouillon-zero, marge-haute, apostille"},
	}},
	{"Y a-t-il une alternative gratuite à Marge Haute ?", []step{
		{`get_tool {"slug":"marge-haute"}`, "tool.category", "redaction"},
		{`search_tools {"category":"redaction","pricing":"gratuit"}`, "", "Omit or relax one of: category, pricing"},
		{`search_tools {"category":"redaction","pricing":"freemium","limit":5}`, "data.slug", "plume, relire-svp, brouillon-zero, apostille"},
	}},

	// Figures.
	{"How many tools are there, and what is their average score?", []step{
		{`catalog_stats {}`, "tools_total tools_avg_score", "48, 6.99"},
	}},
	{"Quelle catégorie a la meilleure note moyenne ?", []step{
		{`list_categories {}`, "data.slug data.avg_score", "agents, chat, code, image, recherche, redaction, video, voix, 7.64, 6.33, 7.56, 7.12, 6.76, 7.1, 6.33, 7.34"},
	}},
	{"What is the median monthly price for each pricing model?", []step{
		{`graphql_query {"query":"{toolGroups(by: pricing) {key count medianMonthlyPrice}}"}`, "toolGroups.key toolGroups.count toolGroups.medianMonthlyPrice", "freemium, gratuit, payant, 21, 8, 19, 15, 0, 30.5"},
	}},
	{"Quels outils ont une obsolescence d'au moins 7 ?", []step{
		{`search_tools {"obsolescence_min":7}`, "meta.total data.slug", "5, marge-haute, dis-moi-leon, tamis-et-pepites, bavard-7, incrusteur"},
	}},
	{"How many tools were retired for each reason?", []step{
		{`graphql_query {"query":"{retirementGroups(by: [reason]) {reason count}}"}`, "retirementGroups.reason retirementGroups.count", "absorbe, acquis, deprecie, mort, pivot, 2, 2, 2, 2, 2"},
	}},
	{"Comment la note moyenne de chaque catégorie évolue-t-elle par trimestre ?", []step{
		{`graphql_query {"query":"{series(metrics: [mean_score], by: category, every: quarter) {key points {value}}}"}`, "series.points.value", "null, 7.6, 7.64, 7.64, 7.56, null, null, null, 6.3, 6.13, 6.3, 6.33, 7.32, 7.18, 7.46, 7.56, 7.38, 7.08, 6.93, 7.12, 6.58, 6.66, 6.72, 6.76, 6.82, 6.94, 7, 7.1, 6.32, 6.2, 6.35, 6.33, 6.9, 7.14, 7.26, 7.34"},
	}},

	// Past releases.
	{"How many tools did the first release have?", []step{{`catalog_stats {"as_of":"1"}`, "tools_total", "42"}}},
	{"Quelle note Plume avait-elle en 2025 ?", []step{
		{`get_tool {"slug":"plume","as_of":"2025-06-01"}`, "", "Available releases: 1 (2026-03-03) to 8"},
		{`get_tool {"slug":"plume","as_of":"1"}`, "tool.score", "7.5"},
	}},
	{"Who won Plume vs Ecritoire & Cie in May 2026?", []step{
		{`compare_tools {"a":"plume","b":"ecritoire-cie","as_of":"2026-05-31"}`, "published.items.winner", "Plume"},
	}},

	// What the catalog does not know.
	{"Que vaut Grokzilla ?", []step{
		{`get_tool {"slug":"grokzilla"}`, "", "Call search_tools to find it."},
		{`search_tools {"search":"grokzilla"}`, "meta.total", "0"},
	}},
	{"Le catalogue connaît-il Midjourney ?", []step{
		{`search {"query":"Midjourney"}`, "", `{"results":[],"hint":"No tool contains these words.`},
	}},
	{"How many employees does Plume have?", []step{
		{`graphql_schema {"search":"employees"}`, "", `search: no type or query matches "employees". Try one word, such as price, score or release.`},
	}},
}
