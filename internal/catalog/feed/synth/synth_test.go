package synth_test

import (
	"bytes"
	"strings"
	"testing"

	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/record"
	"palmares/internal/dev/check"
)

func generate(t *testing.T, opts synth.Options) string {
	t.Helper()
	var buf bytes.Buffer
	check.OK(t, synth.Write(t.Context(), &buf, opts))
	return buf.String()
}

func TestSameOptionsSameBytes(t *testing.T) {
	opts := synth.Options{Tools: 500, Seed: 7, Revision: 2}
	first := generate(t, opts)
	check.Equal(t, first, generate(t, opts), "same options: different feeds")
	for name, other := range map[string]synth.Options{
		"seed":     {Tools: 500, Seed: 8, Revision: 2},
		"revision": {Tools: 500, Seed: 7, Revision: 3},
	} {
		check.True(t, first != generate(t, other), "another %s: got the same feed, want a different one", name)
	}
}

func TestRevisionsChangeFewLines(t *testing.T) {
	before := strings.Split(generate(t, synth.Options{Tools: 1000, Seed: 1}), "\n")
	after := strings.Split(generate(t, synth.Options{Tools: 1000, Seed: 1, Revision: 1}), "\n")
	changed := 0
	for i := range before {
		if before[i] != after[i] {
			changed++
		}
	}
	check.True(t, changed >= 20 && changed <= 100, "got %d of %d lines changed, want 20 to 100", changed, len(before))
}

func TestEdgeCasesOccur(t *testing.T) {
	feed := generate(t, synth.Options{Tools: 2000, Seed: 1})
	for name, piece := range map[string]string{
		"no score":                   `"score":null`,
		"missing score":              `€/mois","verifiability"`,
		"lowest score":               `"score":0,`,
		"highest score":              `"score":10,`,
		"price with a comma":         `,05 €/`,
		"period of several words":    `€/poste / mois"`,
		"unpublished comparison":     `"published":false`,
		"retired tool in comparison": `"tool_b":"ancien-`,
		"retired winner":             `"winner":"ancien-`,
		"empty category":             `"slug":"vide"`,
		"emoji":                      `🦊`,
		"quote in a name":            `Le \"Guillemet\"`,
		"angle brackets":             `L'Établi <3>`,
		"line separator":             "\u2028",
		"no sections":                `"sections":[]`,
		"address with a query":       `?tri=score&page=1#liste`,
		"translated label":           `"translations":{"en":{"label":"`,
		"translated tagline":         `"translations":{"en":{"tagline":"`,
		"translated title":           `"translations":{"en":{"title":"`,
		"translated verdict":         `"translations":{"en":{"winner_note":"`,
		"no translations":            `"translations":{}`,
		"source":                     `"sources":[{"field":"price","url":"https://`,
	} {
		check.Contains(t, feed, piece, "%s: none", name)
	}
	for _, recordType := range record.Types {
		for _, f := range record.Defaults(recordType) {
			given := 0
			for line := range strings.Lines(feed) {
				if _, value, has := strings.Cut(line, `,"`+f.Name+`":`); has && strings.HasPrefix(line, `{"type":"`+recordType+`"`) && !strings.HasPrefix(value, string(f.Default)) {
					given++
				}
			}
			check.True(t, given != 0, "%s.%s: got its default everywhere, want another value", recordType, f.Name)
		}
	}
	longest := 0
	for line := range strings.Lines(feed) {
		longest = max(longest, len(line))
	}
	check.True(t, longest >= 500_000 && longest <= 1<<20, "longest line: got %d bytes, want nearly 1 MiB", longest)
}
