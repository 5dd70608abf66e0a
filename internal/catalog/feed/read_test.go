package feed

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"palmares/internal/catalog/record"
	"palmares/internal/dev/check"
)

// The lines of a small valid feed, in which tests change one thing at a time.
const (
	validHeader     = `{"type":"feed","format":1,"updated_at":"2026-11-10"}`
	validCategory   = `{"type":"category","slug":"code","label":"Code"}`
	validTool       = `{"type":"tool","slug":"plume","name":"Plume","domain":"plume.example","category":"code","icp":"mixte","pricing":"payant","price":"20 €/mois","score":8.4,"verifiability":7.5,"tagline":"Écrit bien.","canonical_url":"https://palmares.example/plume","avis_url":"https://palmares.example/avis/plume","alternatives_url":"https://palmares.example/alt/plume","updated_at":"2026-11-02","tier":1,"mainstream":true,"obsolescence":2,"sections":[{"section":"verdict","text":"Bien."},{"section":"prix","text":"Juste."}],"price_history":[{"changed_at":"2026-05-01","pricing":"payant","price":"20 €/mois","previous_pricing":"gratuit","previous_price":"0 €/mois"}]}`
	validRetired    = `{"type":"cimetiere","slug":"vieux-bot","name":"Vieux Bot","category":"code","reason":"acquis","retired_at":"2026-03-14","note":"Racheté.","score":6.1}`
	validComparison = `{"type":"comparatif","slug":"plume-vs-vieux-bot","title":"Plume ou Vieux Bot ?","tool_a":"plume","tool_b":"vieux-bot","winner":"plume","winner_note":"Il vit.","published":true,"updated_at":"2026-10-20","canonical_url":"https://palmares.example/duel"}`
)

var validLines = []string{validHeader, validCategory, validTool, validRetired, validComparison}

// read checks a feed and returns its errors, one per line.
func read(t *testing.T, feed string) string {
	t.Helper()
	_, err := Check(t.Context(), NewLines(strings.NewReader(feed)), nil, nil)
	var errs *ValidationError
	check.MustTrue(t, err == nil || errors.As(err, &errs), "got %v, want errors in the feed", err)
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestValidFeeds(t *testing.T) {
	lines := strings.Join(validLines, "\n")
	for name, feed := range map[string]string{
		"with a last line break":    lines + "\n",
		"without a last line break": lines,
		"with CRLF":                 strings.ReplaceAll(lines, "\n", "\r\n"),
		"in another order":          strings.Join([]string{validHeader, validComparison, validRetired, validTool, validCategory}, "\n"),
		"with only a header":        validHeader,
	} {
		t.Run(name, func(t *testing.T) { check.Equal(t, read(t, feed), "", "want no errors") })
	}
}

// TestRules breaks one rule at a time: it replaces from with to in the valid
// feed, and the error must be exactly want.
func TestRules(t *testing.T) {
	long := strings.Repeat("a", 81)
	for _, c := range []struct{ name, from, to, want string }{
		{"slug with upper case", `"slug":"plume","name"`, `"slug":"Plume","name"`,
			`line 3: tool: slug: must be words of a-z and 0-9 joined by single hyphens (got "Plume")`},
		{"slug with a double dash", `"slug":"code","label"`, `"slug":"co--de","label"`,
			`line 2: category: slug: must be words of a-z and 0-9 joined by single hyphens (got "co--de")`},
		{"slug ending in a dash", `"slug":"plume-vs-vieux-bot"`, `"slug":"plume-"`,
			`line 5: comparatif: slug: must be words of a-z and 0-9 joined by single hyphens (got "plume-")`},
		{"slug with an accent", `"slug":"vieux-bot","name"`, `"slug":"vieux-bôt","name"`,
			`line 4: cimetiere: slug: must be words of a-z and 0-9 joined by single hyphens (got "vieux-bôt")`},
		{"slug too long", `"slug":"plume-vs-vieux-bot"`, `"slug":"` + long + `"`,
			`line 5: comparatif: slug: must have at most 80 characters (got 81 in "` + long[:64] + `…")`},
		{"slug empty", `"slug":"plume-vs-vieux-bot"`, `"slug":""`, `line 5: comparatif: slug: must not be blank`},
		{"slug missing", `"slug":"plume-vs-vieux-bot",`, ``, `line 5: comparatif: slug: is required, but missing`},
		{"slug twice", validComparison, validComparison + "\n" + validComparison,
			`line 6: comparatif "plume-vs-vieux-bot": slug: is already used at line 5; each slug may appear once`},
		{"category twice", validCategory, validCategory + "\n" + validCategory,
			`line 3: category "code": slug: is already used at line 2; each slug may appear once`},
		{"both active and retired", `"slug":"vieux-bot","name"`, `"slug":"plume","name"`,
			"line 4: cimetiere \"plume\": slug: is already used at line 3; each slug may appear once\n" +
				`line 5: comparatif "plume-vs-vieux-bot": tool_b: the feed has no tool "vieux-bot"; add it, or correct the slug`},

		{"score over", `"score":8.4`, `"score":11`, `line 3: tool "plume": score: must be at most 10 (got 11)`},
		{"score under", `"score":8.4`, `"score":-0.1`, `line 3: tool "plume": score: must be at least 0 (got -0.1)`},
		{"score as text", `"score":8.4`, `"score":"8.4"`, `line 3: tool "plume": score: must be a number without quotation marks, such as 8.4 (got "8.4")`},
		{"score too large for a number", `"score":8.4`, `"score":1e400`, `line 3: tool "plume": score: must be at most 10 (got 1e400)`},
		{"score of a retired tool", `"score":6.1`, `"score":10.01`, `line 4: cimetiere "vieux-bot": score: must be at most 10 (got 10.01)`},
		{"verifiability over", `"verifiability":7.5`, `"verifiability":10.5`, `line 3: tool "plume": verifiability: must be at most 10 (got 10.5)`},
		{"obsolescence under", `"obsolescence":2`, `"obsolescence":-2`, `line 3: tool "plume": obsolescence: must be at least 0 (got -2)`},
		{"tier 0", `"tier":1`, `"tier":0`, `line 3: tool "plume": tier: must be at least 1 (got 0)`},
		{"tier 4", `"tier":1`, `"tier":4`, `line 3: tool "plume": tier: must be at most 3 (got 4)`},
		{"tier and a half", `"tier":1`, `"tier":1.5`, `line 3: tool "plume": tier: must be a whole number (got 1.5)`},
		{"tier null", `"tier":1`, `"tier":null`, `line 3: tool "plume": tier: must be a number (got null)`},
		{"mainstream as a number", `"mainstream":true`, `"mainstream":1`,
			`line 3: tool "plume": mainstream: must be true or false (got a number)`},
		{"published as text", `"published":true`, `"published":"oui"`,
			`line 5: comparatif "plume-vs-vieux-bot": published: must be true or false (got a string)`},

		{"icp unknown", `"icp":"mixte"`, `"icp":"Mixte"`,
			`line 3: tool "plume": icp: must be one of vibe-coder, agentic-engineer, mixte (got "Mixte")`},
		{"pricing unknown", `"pricing":"payant","price":"20 €/mois","score"`, `"pricing":"cher","price":"20 €/mois","score"`,
			`line 3: tool "plume": pricing: must be one of gratuit, freemium, payant (got "cher")`},
		{"reason unknown", `"reason":"acquis"`, `"reason":"oublié"`,
			`line 4: cimetiere "vieux-bot": reason: must be one of mort, acquis, deprecie, pivot, absorbe (got "oublié")`},

		{"date that does not exist", `"updated_at":"2026-11-02"`, `"updated_at":"2026-02-30"`,
			`line 3: tool "plume": updated_at: must be a calendar date as YYYY-MM-DD (got "2026-02-30")`},
		{"date with a time", `"retired_at":"2026-03-14"`, `"retired_at":"2026-03-14T00:00:00Z"`,
			`line 4: cimetiere "vieux-bot": retired_at: must be a calendar date as YYYY-MM-DD (got "2026-03-14T00:00:00Z")`},
		{"date as a number", `"updated_at":"2026-10-20"`, `"updated_at":20261020`,
			`line 5: comparatif "plume-vs-vieux-bot": updated_at: must be a string (got a number); put it in quotation marks`},
		{"date of the feed", `"updated_at":"2026-11-10"`, `"updated_at":"10/11/2026"`,
			`line 1: feed: updated_at: must be a calendar date as YYYY-MM-DD (got "10/11/2026")`},

		{"relative address", `"https://palmares.example/plume"`, `"/plume"`,
			`line 3: tool "plume": canonical_url: must be an absolute http or https URL (got "/plume")`},
		{"address of another kind", `"https://palmares.example/alt/plume"`, `"ftp://palmares.example/plume"`,
			`line 3: tool "plume": alternatives_url: must be an absolute http or https URL (got "ftp://palmares.example/plume")`},
		{"address with a script", `"https://palmares.example/avis/plume"`, `"javascript:alert(1)"`,
			`line 3: tool "plume": avis_url: must be an absolute http or https URL (got "javascript:alert(1)")`},
		{"address without a host", `"https://palmares.example/duel"`, `"https:///duel"`,
			`line 5: comparatif "plume-vs-vieux-bot": canonical_url: must be an absolute http or https URL (got "https:///duel")`},
		{"address with a space", `"https://palmares.example/duel"`, `"https://palmares.example/du el"`,
			`line 5: comparatif "plume-vs-vieux-bot": canonical_url: must be an absolute http or https URL (got "https://palmares.example/du el")`},

		{"price in dollars", `"price":"20 €/mois","score"`, `"price":"20 $/mois","score"`,
			`line 3: tool "plume": price: must be <amount> €/<period>, such as 20 €/mois (got "20 $/mois")`},
		{"price without a period", `"price":"20 €/mois","score"`, `"price":"20 €/","score"`,
			`line 3: tool "plume": price: must be <amount> €/<period>, such as 20 €/mois (got "20 €/")`},
		{"price without an amount", `"price":"20 €/mois","score"`, `"price":" €/mois","score"`,
			`line 3: tool "plume": price: must be <amount> €/<period>, such as 20 €/mois (got " €/mois")`},
		{"price with two commas", `"price":"20 €/mois","score"`, `"price":"1,000,00 €/mois","score"`,
			`line 3: tool "plume": price: must be <amount> €/<period>, such as 20 €/mois (got "1,000,00 €/mois")`},
		{"negative price", `"price":"20 €/mois","score"`, `"price":"-1 €/mois","score"`,
			`line 3: tool "plume": price: must be <amount> €/<period>, such as 20 €/mois (got "-1 €/mois")`},
		{"invalid previous price", `"previous_price":"0 €/mois"`, `"previous_price":"rien"`,
			`line 3: tool "plume": price_history[0].previous_price: must be <amount> €/<period>, such as 20 €/mois (got "rien")`},

		{"name blank", `"name":"Plume"`, `"name":" \t "`, `line 3: tool "plume": name: must not be blank`},
		{"note empty", `"note":"Racheté."`, `"note":""`, `line 4: cimetiere "vieux-bot": note: must not be blank`},
		{"label null", `"label":"Code"`, `"label":null`, `line 2: category "code": label: must be a string (got null)`},
		{"label missing", `,"label":"Code"`, ``, `line 2: category "code": label: is required, but missing`},
		{"NUL in a text", `"Écrit bien."`, `"Écrit\u0000bien."`, `line 3: tool "plume": tagline: must not contain a NUL character`},
		{"unpaired surrogate", `"Écrit bien."`, `"\ud800"`, `line 3: tool "plume": the line is not valid JSON at byte 187`},
		{"not UTF-8", `Écrit bien.`, "\xc9crit bien.", `line 3: the line is not valid UTF-8`},

		{"unknown category", `"category":"code","icp"`, `"category":"cod","icp"`,
			`line 3: tool "plume": category: the feed has no category "cod"; add it, or correct the slug`},
		{"unknown category of a retired tool", `"category":"code","reason"`, `"category":"cod","reason"`,
			`line 4: cimetiere "vieux-bot": category: the feed has no category "cod"; add it, or correct the slug`},
		{"unknown tool", `"tool_b":"vieux-bot"`, `"tool_b":"jeune-bot"`,
			`line 5: comparatif "plume-vs-vieux-bot": tool_b: the feed has no tool "jeune-bot"; add it, or correct the slug`},
		{"winner of another comparison", `"winner":"plume"`, `"winner":"lanterne"`,
			`line 5: comparatif "plume-vs-vieux-bot": winner: must be tool_a or tool_b (got "lanterne")`},
		{"section twice", `"section":"prix"`, `"section":"verdict"`,
			`line 3: tool "plume": sections[1].section: "verdict" is used twice; a tool has each section once`},
		{"section without text", `"section":"prix","text":"Juste."`, `"section":"prix"`,
			`line 3: tool "plume": sections[1].text: is required, but missing`},
		{"sections as text", `"sections":[{"section":"verdict","text":"Bien."},{"section":"prix","text":"Juste."}]`, `"sections":"Bien."`,
			`line 3: tool "plume": sections: must be an array (got a string)`},
		{"sections of text", `{"section":"prix","text":"Juste."}`, `"prix"`,
			`line 3: tool "plume": sections[1]: must be an object (got a string)`},
		{"unknown key in a section", `"section":"prix","text"`, `"section":"prix","titre":"Prix","text"`,
			`line 3: tool "plume": sections[1].titre: is not a known field; use section or text`},

		{"unknown key", `"tagline"`, `"tag_line"`,
			"line 3: tool \"plume\": tag_line: is not a known field; did you mean tagline?\nline 3: tool \"plume\": tagline: is required, but missing"},
		{"key in another case", `"score":6.1`, `"Score":6.1`, `line 4: cimetiere "vieux-bot": Score: is not a known field; did you mean score?`},
		{"key twice", `"score":6.1`, `"score":6.1,"score":6.2`, `line 4: cimetiere "vieux-bot": score: is given twice; keep one of them`},
		{"unknown type", `"type":"category"`, `"type":"categorie"`,
			`line 2: type: must be one of category, tool, comparatif, cimetiere (got "categorie")`},
		{"type not first", `{"type":"category","slug":"code"`, `{"slug":"code","type":"category"`,
			`line 2: the line must begin with its type, such as {"type":"tool",…}`},
		{"type of another kind", `"type":"category"`, `"type":7`, `line 2: the line must begin with its type, such as {"type":"tool",…}`},
		{"a second header", validCategory, validCategory + "\n" + validHeader, `line 3: feed: only the first line may have this type`},
		{"another format", `"format":1`, `"format":2`, `line 1: feed: format: must be 1 (got 2)`},
		{"no format", `"format":1,`, ``, `line 1: feed: format: is required, but missing`},
		{"unknown key of the feed", `"format":1`, `"format":1,"source":"x"`, `line 1: feed: source: is not a known field; use format or updated_at`},
		{"several errors in one record", `"score":8.4,"verifiability":7.5`, `"score":12,"verifiability":-1`,
			"line 3: tool \"plume\": score: must be at most 10 (got 12)\nline 3: tool \"plume\": verifiability: must be at least 0 (got -1)"},
		{"key with control characters", `"score":6.1`, `"\u001b[2J\nline 9: forged":6.1`,
			"line 4: cimetiere \"vieux-bot\": \"\uFFFD[2J\uFFFDline 9: forged\": is not a known field"},
		{"long key", `"score":6.1`, `"` + strings.Repeat("k", 500) + `":6.1`,
			`line 4: cimetiere "vieux-bot": "` + strings.Repeat("k", 64) + `…": is not a known field`},
		{"key without a name", `"score":6.1`, `"":6.1`, `line 4: cimetiere "vieux-bot": "": is not a known field`},
		{"invisible name", `"name":"Plume"`, `"name":"\u200b\u00a0"`, `line 3: tool "plume": name: must not be blank`},
		{"price with an invisible period", `"price":"20 €/mois","score"`, `"price":"20 €/\u00a0","score"`,
			"line 3: tool \"plume\": price: must be <amount> €/<period>, such as 20 €/mois (got \"20 €/\u00a0\")"},
		{"address with a port out of range", `"https://palmares.example/duel"`, `"https://palmares.example:99999/duel"`,
			`line 5: comparatif "plume-vs-vieux-bot": canonical_url: must be an absolute http or https URL (got "https://palmares.example:99999/duel")`},
		{"text with control characters", `"icp":"mixte"`, `"icp":"\u001b[2J"`,
			"line 3: tool \"plume\": icp: must be one of vibe-coder, agentic-engineer, mixte (got \"\uFFFD[2J\")"},
	} {
		t.Run(c.name, func(t *testing.T) {
			valid := strings.Join(validLines, "\n")
			feed := strings.Replace(valid, c.from, c.to, 1)
			check.MustTrue(t, feed != valid, "got no %q in the feed, want one to replace", c.from)
			check.Equal(t, read(t, feed), c.want)
		})
	}
}

func TestAllowedValues(t *testing.T) {
	for _, c := range []struct{ name, from, to string }{
		{"optional keys left out", `,"tier":1,"mainstream":true,"obsolescence":2`, ``},
		{"no sections", `[{"section":"verdict","text":"Bien."},{"section":"prix","text":"Juste."}]`, `[]`},
		{"no score", `"score":8.4`, `"score":null`},
		{"no review page", `"avis_url":"https://palmares.example/avis/plume"`, `"avis_url":null`},
		{"the ends of the scale", `"score":8.4,"verifiability":7.5`, `"score":0,"verifiability":10.0`},
		{"a number with an exponent", `"score":8.4`, `"score":84e-1`},
		{"price with a comma", `"price":"20 €/mois","score"`, `"price":"19,90 €/mois","score"`},
		{"price with a point", `"price":"20 €/mois","score"`, `"price":"0.5 €/heure","score"`},
		{"price with a period of several words", `"price":"20 €/mois","score"`, `"price":"20 €/poste et par mois","score"`},
		{"escaped letters", `"Écrit bien."`, `"\u00c9crit \ud83e\udd8a."`},
		{"spaces between tokens", `"score":8.4`, ` "score" : 8.4 `},
	} {
		t.Run(c.name, func(t *testing.T) {
			feed := strings.Replace(strings.Join(validLines, "\n"), c.from, c.to, 1)
			check.Equal(t, read(t, feed), "", "want no errors")
		})
	}
}

func TestNotAFeed(t *testing.T) {
	valid := strings.Join(validLines, "\n")
	for _, c := range []struct{ name, feed, want string }{
		{"empty", "", "line 1: the feed is empty"},
		{"a line break", "\n", "line 1: the line is blank; remove it"},
		{"no first line", strings.Join(validLines[1:], "\n"),
			`line 1: the first line must be the header, {"type":"feed",…} (got type "category")`},
		{"binary", "\x7fELF\x02\x01\x00\xff\xfe\n\x00\x00", "line 1: the line is not valid UTF-8"},
		{"HTML", "<!doctype html>\n<html></html>", "line 1: the line is not a JSON object"},
		{"an array", `[{"type":"feed"}]`, "line 1: the line is not a JSON object"},
		{"byte order mark", "\uFEFF" + valid, "line 1: the line starts with a byte order mark; save the feed as UTF-8 without one"},
		{"cut within a line", valid[:len(valid)-20], `line 5: comparatif "plume-vs-vieux-bot": the line ends before its object does; is the feed truncated?`},
		{"cut within a word", valid[:len(validHeader)+10], `line 2: the line ends before its object does; is the feed truncated?`},
		{"broken within a line", strings.Replace(valid, `"label":`, `"label"`, 1), `line 2: category "code": the line is not valid JSON at byte 41`},
		{"two objects on a line", strings.Replace(valid, "\n{\"type\":\"tool\"", "{\"type\":\"tool\"", 1), `line 2: category "code": the line continues after the object; put each record on its own line`},
		{"blank line between", strings.Replace(valid, "\n", "\n\n", 1), "line 2: the line is blank; remove it"},
		{"nested too deeply", validHeader + "\n" + `{"type":"tool","x":` + strings.Repeat("[", 200_000), `line 2: tool: the line is not valid JSON`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := read(t, c.feed)
			check.True(t, strings.HasPrefix(got, c.want) && !strings.Contains(got, "\n"), "got  %s\nwant %s", got, c.want)
		})
	}
}

func TestCompressedFeeds(t *testing.T) {
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, _ = io.WriteString(w, strings.Join(validLines, "\n"))
	_ = w.Close()
	whole := compressed.Bytes()
	damaged := bytes.Clone(whole)
	damaged[len(damaged)/2] ^= 0xff

	for _, c := range []struct {
		name string
		feed []byte
		want string
	}{
		{"whole", whole, ""},
		{"cut short", whole[:len(whole)-30], "the compressed feed is damaged or truncated"},
		{"cut in its header", whole[:5], "line 1: the compressed feed is damaged or truncated"},
		{"damaged", damaged, ""}, // the error depends on the position of the damage
	} {
		t.Run(c.name, func(t *testing.T) {
			got := read(t, string(c.feed))
			check.Contains(t, got, c.want)
			check.Equal(t, (c.name == "whole"), (got == ""))
		})
	}
}

// A record that cannot be read may be the one that another record refers to.
func TestReferencesToUnreadableRecords(t *testing.T) {
	long := strings.Replace(validTool, "Écrit bien.", strings.Repeat("x", MaxLine), 1)
	want := "line 3: the line is longer than 1 MiB"
	check.Equal(t, read(t, strings.Join([]string{validHeader, validCategory, long, validRetired, validComparison}, "\n")), want)
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, _ = io.WriteString(w, strings.Join([]string{validHeader, validCategory, validComparison, ""}, "\n"))
	_ = w.Flush()
	want = "line 4: the compressed feed is damaged or truncated"
	check.Equal(t, read(t, compressed.String()), want)
}

func TestAtMostAHundredErrors(t *testing.T) {
	var feed strings.Builder
	feed.WriteString(validHeader + "\n")
	for i := range 250 {
		fmt.Fprintf(&feed, "{\"type\":\"category\",\"slug\":\"c-%d\"}\n", i)
	}
	_, err := Check(t.Context(), NewLines(once{io.MultiReader(strings.NewReader(feed.String()), failingDisk{})}), nil, nil)
	check.MustTrue(t, err != nil, "got no error, want those of the first lines") // the rest is not read
	lines := strings.Split(err.Error(), "\n")
	check.Must(t, len(lines), 101)
	check.Equal(t, lines[100], "only the first 100 faults are shown")
	check.Equal(t, lines[99], `line 101: category "c-99": label: is required, but missing`)
}

// A very long line uses little memory, and errors in later lines are reported.
func TestVeryLongLine(t *testing.T) {
	const length = 2 << 30
	feed := io.MultiReader(
		strings.NewReader(validHeader+"\n{\"type\":\"category\",\"slug\":\""),
		io.LimitReader(endlessText{}, length),
		strings.NewReader("\"}\n{\"type\":\"category\",\"slug\":\"code\"}\n"),
	)
	var errs *ValidationError
	_, err := Check(t.Context(), NewLines(once{feed}), nil, nil)
	const want = "line 2: the line is longer than 1 MiB\nline 3: category \"code\": label: is required, but missing"
	check.MustTrue(t, errors.As(err, &errs), "got %v, want %s", err, want)
	check.Equal(t, err.Error(), want)
}

func TestLongestLine(t *testing.T) {
	line := func(length int) string {
		const start, end = `{"type":"category","slug":"code","label":"`, `"}`
		return start + strings.Repeat("a", length-len(start)-len(end)) + end
	}
	check.Equal(t, read(t, validHeader+"\n"+line(1<<20)+"\n"), "", "line of 1 MiB: want no errors")
	const want = "line 2: the line is longer than 1 MiB"
	check.Equal(t, read(t, validHeader+"\n"+line(1<<20+1)+"\n"), want, "line of 1 MiB and one byte")
}

// once is a feed that can be read once.
type once struct{ io.Reader }

func (once) Seek(int64, int) (int64, error) { return 0, nil }

// endlessText is a reader without an end.
type endlessText struct{}

var letters = bytes.Repeat([]byte("a"), 1<<20)

func (endlessText) Read(p []byte) (int, error) { return copy(p, letters), nil }

func TestReadingStopsWhenCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check.Try(Check(ctx, NewLines(strings.NewReader(strings.Join(validLines, "\n"))), nil, nil)).Is(t, context.Canceled)
}

type failingDisk struct{}

func (failingDisk) Read([]byte) (int, error) { return 0, errors.New("input/output error") }

func (failingDisk) Seek(int64, int) (int64, error) { return 0, errors.New("input/output error") }

func TestFailingDiskIsNotAValidationError(t *testing.T) {
	for _, disk := range []io.ReadSeeker{once{io.MultiReader(strings.NewReader(validHeader+"\n"), failingDisk{})}, failingDisk{}} {
		_, err := Check(t.Context(), NewLines(disk), nil, nil)
		check.Is(t, err, errUnreadable)
	}
}

func TestReadReportsProgress(t *testing.T) {
	feed, done, total := strings.Join(validLines, "\n"), int64(0), int64(0)
	check.Try(Check(t.Context(), NewLines(strings.NewReader(feed)), func(d, of int64) { done, total = d, of }, nil)).OK(t)
	check.Equal(t, done, int64(len(feed)), "done")
	check.Equal(t, total, done, "total")
}

// FuzzRead checks that errors of a feed have lines, and that a feed does not change when it
// is written again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(strings.Join(validLines, "\n")))
	for _, line := range validLines {
		f.Add([]byte(validHeader + "\n" + line))
	}
	f.Fuzz(func(t *testing.T, feed []byte) {
		before, err := Check(context.Background(), NewLines(bytes.NewReader(feed)), nil, nil)
		if err != nil {
			var errs *ValidationError
			check.MustTrue(t, errors.As(err, &errs) && len(errs.List) != 0 && errs.List[0].At.Line >= 1, "got %v, want errors with lines", err)
			return
		}
		var again bytes.Buffer
		out := NewWriter(&again, before.Header.UpdatedAt)
		rewrite := scanner{selected: Selection{Types: record.Types}, errs: &ValidationError{}}
		rewrite.visit = func(_ int, rec record.Record, _ bool) error { out.Write(rec); return nil }
		check.OK(t, rewrite.scan(context.Background(), NewLines(bytes.NewReader(feed)), nil))
		check.OK(t, out.Flush())
		after := check.Try(Check(context.Background(), NewLines(bytes.NewReader(again.Bytes())), nil, nil)).OK(t, "reading the feed that was written")
		for slug, tool := range before.Tools {
			other := after.Tools[slug]
			check.True(t, other != nil && other.Fingerprint == tool.Fingerprint && other.HistoryHash == tool.HistoryHash, "tool %s after writing: got %+v, want %+v", slug, other, tool)
		}
		check.Equal(t, len(before.Comparisons), len(after.Comparisons), "after writing")
		check.Equal(t, len(before.Categories), len(after.Categories), "after writing")
	})
}

// A file name never starts a line of its own, where a workflow would read a command.
func TestFileNames(t *testing.T) {
	for name, want := range map[string]string{
		"tools/plume.md": "tools/plume.md:3:1", "tools/\n::add-mask::x.md": `"tools/\n::add-mask::x.md":3:1`, "a\r\x1b[2J": `"a\r\x1b[2J":3:1`,
	} {
		check.Equal(t, (Position{File: name, Line: 3, Column: 1}).String(), want)
	}
}
