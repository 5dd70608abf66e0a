package server

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"palmares/internal/core/lang"
	"palmares/internal/dev/check"
	"palmares/internal/web/page"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// print returns the table as text. The first pattern of a row has its policy.
func (t *routes) print() string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "pattern\tcallers\tbasic\tpays\tcors\tdeadline\tbody\tmethods\tcached\tpath\tlocalized\tbesides\tlisted")
	for _, m := range t.mounts {
		listed := []string{}
		for where, paths := range map[string][]string{"banner": {m.start()}, "suggested": m.suggested, "sitemap": m.sitemap} {
			if len(paths) > 0 && (where != "banner" || m.banner != "") {
				listed = append(listed, where+" "+strings.Join(paths, " "))
			}
		}
		slices.Sort(listed)
		column := func(text string, applies bool) string {
			if applies {
				return text
			}
			return "-"
		}
		columns := []string{
			m.on[0], string(m.callers), column("basic", m.basic), string(m.pays), column("cors", m.cors), column(string(m.deadline), m.deadline != ownLimits), string(m.body),
			column(m.methods, m.methods != ""), string(m.cached), column("as sent", m.asSent), column("localized", m.localized),
			besides(m), strings.Join(listed, "; "),
		}
		fmt.Fprintln(w, strings.Join(columns, "\t"))
		for _, pattern := range m.on[1:] {
			fmt.Fprintf(w, "%s\t\"\n", pattern)
		}
	}
	_ = w.Flush() // a builder does not fail
	return out.String()
}

func besides(m mount) string {
	var all []string
	for name, set := range map[string]bool{"described": m.described, "explorer": m.explorer, "unnamed": m.unnamed} {
		if set {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return strings.Join(append(all, "-")[:max(1, len(all))], " ")
}

// The table is in a file, so that every change of a policy is visible in a review.
func TestTable(t *testing.T) {
	const golden = "testdata/table.txt"
	got := newRoutes(table(handlers{})).print()
	if *update {
		check.OK(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want := check.Try(os.ReadFile(golden)).OK(t)
	if got == string(want) {
		return
	}
	t.Errorf("got another table than in %s; if the change is intended, run go test ./internal/server -run TestTable -update", golden)
	for _, c := range []struct{ sign, lines, in string }{{"-", string(want), got}, {"+", got, string(want)}} {
		for line := range strings.Lines(c.lines) {
			if !strings.Contains(c.in, line) {
				t.Logf("%s %s", c.sign, line)
			}
		}
	}
}

// Every row says who pays, and nobody pays only for what is static or cached, with the
// exceptions below. Pages have the prefix of a language.
func TestPolicies(t *testing.T) {
	free := map[string]string{
		"/api/v1": "no such path", "/api": "no such path", "/api/": "no such path",
		"/q/{handle}/openapi.json": "described from memory", "/feeds/status.atom": "read at most every 30 seconds", "/status.json": "the same",
		"/files/":              "listed from memory",
		"/files/latest/{name}": "a redirect", "/files/latest/": "no such file",
		"/account": "signed in", "/account/": "signed in", "/login": "emails are limited", "/login/": "emails are limited", "/logout": "signed in",
		"/oauth/authorize": "a redirect", "/billing/stripe": "signed", "/healthz": "a probe", "/readyz": "a probe",
	}
	routes := newRoutes(table(handlers{}))
	for pattern, rt := range routes.byPattern {
		check.True(t, rt.callers != "" && rt.pays != "" && rt.body != "" && rt.cached != "",
			"%s: got %+v, want every column filled", pattern, rt.policy)
		check.Equal(t, (rt.pays == nobody && rt.cached == notCached), (free[pattern] != ""), "%s: %s %s", pattern, rt.pays, rt.cached)
		if own := regexp.MustCompile(`^/(api|graphql|mcp|assets|files/(latest|releases))\b`).MatchString(pattern); (rt.deadline == ownLimits) != own {
			t.Errorf("%s: got deadline %q, want one unless the handler limits operations or sends files", pattern, rt.deadline)
		}
		check.True(t, (rt.callers == mayHave || rt.callers == key) == rt.identifies() && (!rt.basic || rt.identifies()),
			"%s: got callers %s and basic %t, want callers who may send a key", pattern, rt.callers, rt.basic)
		path := examplePathOf(pattern)
		if local := page.LocalPath(lang.French, path); (local != path) != rt.localized && pattern != "/" {
			t.Errorf("%s: got localized %t, want it as for %s", pattern, rt.localized, local)
		}
	}
}

// examplePathOf returns a path that matches a pattern.
func examplePathOf(pattern string) string {
	return strings.NewReplacer("{$}", "", "{slug}", "plume", "{handle}", "palmares", "{name}", "growth", "{number}", "1",
		"{hash}", "a91b7cb12efa5670f37edfdf67da5ad0", "{a}", "plume", "{b}", "atelier-nova", "{c}", "ecritoire-cie", "{d}", "gazette").Replace(pattern)
}
