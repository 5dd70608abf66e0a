package site_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

func TestHomePage(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		get(t, handler, "/en/", 200, "<dd>48</dd>", "<dd>6.99</dd>", "Updated on <time", "1,000 requests per day", "€99<span> per month plus VAT", "10 API keys and a 99% uptime", `curl -s "https://palmares.example/api/v1/tools?score_min=8&amp;limit=2"`,
			">https://palmares.example/mcp<", `<i>&#34;name&#34;</i>: &#34;Bosco &amp; Matelots&#34;,`, `<i>&#34;score&#34;</i>: <b>9.4</b>,`,
			`<span lang="fr">&#34;18 €/mois&#34;</span>`, `<span class="rating excellent">9.4</span>`, "€0.50 per hour", `href="/en/categories/redaction" >Writing</a><span>6 tools, <span>5 tested</span></span>`,
			`href="/en/login">Get a free API key`, `href="/en/method"`, `href="/en/pricing"`, "Source: palmares (https://palmares.example)")
		get(t, handler, "/fr/", 200, "<dd>6,99</dd>", "Mis à jour le <time", `<span class="rating excellent">9,4</span>`, "par heure",
			`href="/fr/categories/redaction" >Rédaction</a>`, "Obtenir une clé d’API gratuite", "l’affiche A2")
	})
}

// The edition's largest changes and the latest prices are those of the journal.
func TestHomeChanges(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	publishEditions(t, s)
	handler := newSite(t, s)
	body := get(t, handler, "/", 200, "Edition 8 at a glance", "Pigment &amp; Braise and L’Enclume 8 gain the most: &#43;0.3.", "<dt>scores up</dt><dd>8</dd>", `<h3>Score changes in edition 8</h3>`,
		`<del>€24.90/month</del>`, `<ins>€19.90/month</ins>`, `<time datetime="2026-09-14">`)
	check.Equal(t, strings.Count(body, `<svg class="bar-of-change`), 10, "bars of 5 scores and 5 prices")
	days := regexp.MustCompile(`since <time datetime="([^"]+)"`).FindAllString(body, -1)
	check.True(t, slices.IsSortedFunc(days, func(a, b string) int { return strings.Compare(b, a) }), "got %q, want the latest price first", days)
	then := get(t, handler, "/?as_of=5", 200, `api/v1/tools?score_min=8&amp;limit=2&amp;as_of=5"`, "query @asOf(release: 5) {")
	if strings.Contains(then, "€19.90/month") {
		t.Error("as of release 5: got a price of release 7, want none")
	}
}

var jsonLD = regexp.MustCompile(`(?s)<script type="application/ld\+json">(.*?)</script>`)

// Search engines find the organization, the search and the data set.
func TestHomeStructuredData(t *testing.T) {
	for name, handler := range map[string]http.Handler{"demo": onSQLite(t), "empty": newSite(t, testkit.Open(t, testkit.SQLite(t)))} {
		found := jsonLD.FindStringSubmatch(get(t, handler, "/fr/", 200))
		if found == nil {
			t.Fatalf("%s: got no JSON-LD, want some", name)
		}
		var got struct {
			Graph []struct {
				Type            string `json:"@type"`
				DateModified    string
				PotentialAction struct{ Target struct{ URLTemplate string } }
			} `json:"@graph"`
		}
		if err := json.Unmarshal([]byte(found[1]), &got); err != nil {
			t.Fatalf("%s: got %v in %s, want JSON", name, err, found[1])
		}
		if len(got.Graph) != 3 || got.Graph[0].Type != "Organization" || got.Graph[1].Type != "WebSite" || got.Graph[2].Type != "Dataset" ||
			got.Graph[1].PotentialAction.Target.URLTemplate != "https://palmares.example/fr/search?q={search_term_string}" || (got.Graph[2].DateModified == "") != (name == "empty") {
			t.Errorf("%s: got %+v, want an organization, a site with a search and a dated data set", name, got.Graph)
		}
	}
}
