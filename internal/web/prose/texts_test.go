package prose_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"palmares/internal/dev/check"
	"palmares/internal/web/page"
	"palmares/internal/web/prose"
)

func config(folder string) prose.Config {
	return prose.Config{
		Service: page.Service{PublicURL: "https://palmares.example", ServiceName: `Palma "res" <x>`, Credit: "Source : palmares (https://palmares.example)", Contact: "hello@palmares.example", Plans: page.Plans{
			Anonymous: page.Plan{DailyQuota: 123, Streams: 5}, Developer: page.Plan{DailyQuota: 4567, Keys: 3, Embeddings: true, Downloads: true},
			Pro: page.Plan{Keys: 10, Embeddings: true, Downloads: true, Webhooks: true, MonthlyEuros: 89, Uptime: 98},
		}},
		ServiceURL: "https://palmares.example", Folder: folder,
	}
}

func serve(t *testing.T, cfg prose.Config) http.Handler {
	t.Helper()
	pages, err := prose.New(cfg)
	check.OK(t, err)
	return page.Localize(pages)
}

func get(t *testing.T, handler http.Handler, target, accept string) (body string, header http.Header) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	check.Equal(t, w.Code, 200, target)
	return w.Body.String(), w.Header()
}

var (
	description = regexp.MustCompile(`<meta name="description" content="([^"]*)">`)
	badSpace    = regexp.MustCompile(`[\p{L}\d] [:;?!»%€]|« `)
)

func TestEveryPageInBothLanguages(t *testing.T) {
	handler := serve(t, config(""))
	for _, name := range prose.TextNames {
		path := "/" + name
		for _, l := range []string{"en", "fr"} {
			target := "/" + l + path
			body, header := get(t, handler, target, "text/html")
			if header.Get("Content-Security-Policy") == "" || !strings.Contains(body, `<html lang="`+l+`">`) || strings.Count(body, "<h1") != 1 || strings.Contains(body, "{{") || strings.Contains(body, " style=") {
				t.Errorf("%s: got %v and a page without one heading in its language, or with a placeholder or style", target, header)
			}
			if found := description.FindStringSubmatch(body); found == nil || utf8.RuneCountInString(found[1]) < 70 || utf8.RuneCountInString(found[1]) > 175 {
				t.Errorf("%s: got description %q, want 70 to 175 characters", target, found)
			}
			if strings.Contains(body, `href="/method"`) || !strings.Contains(body, `href="/`+l+`/`) {
				t.Errorf("%s: got links without a language, want them in %s", target, l)
			}
			for address, accept := range map[string]string{target + ".md": "*/*", target: "text/markdown"} {
				text, header := get(t, handler, address, accept)
				if header.Get("Content-Type") != page.MarkdownType || !strings.HasPrefix(text, "# ") || strings.Contains(text, "](/") {
					t.Errorf("%s as %s: got %s, want Markdown with absolute links", address, accept, header.Get("Content-Type"))
				}
				if l == "fr" {
					if bad := badSpace.FindString(strings.ReplaceAll(text, "Source : ", "")); bad != "" { // the credit line is as the interface has it
						t.Errorf("%s: got %q, want a no-break space", address, bad)
					}
				}
			}
		}
	}
}

func TestFigures(t *testing.T) {
	handler := serve(t, config(""))
	for target, want := range map[string][]string{
		"/en/pricing": {"<td>123</td>", "<td>4,567</td>", "€89 per month plus VAT", "<td>98%</td>", "unlimited", "up to 123 requests per day", `href="/en/login"`},
		"/fr/pricing": {"<td>4\u00a0567</td>", "89\u00a0€ par mois hors TVA", "98\u00a0%", "illimité", "jusqu’à 123 requêtes"},
		"/en/terms":   {"98% uptime", `<a href="mailto:hello@palmares.example">`},
		"/en/contact": {`<a href="mailto:hello@palmares.example">`},
		"/en/licence": {`data-copy="code-1"`, `data-copy="code-2"`, `data-copy="code-3"`, "Source : palmares (https://palmares.example)",
			"&lt;a href=&#34;https://palmares.example&#34;&gt;Palma &amp;#34;res&amp;#34; &amp;lt;x&amp;gt;&lt;/a&gt;", "](https://palmares.example)"},
		"/fr/licence": {">Copier</button>", ">Texte<"},
	} {
		body, _ := get(t, handler, target, "text/html")
		body = strings.ReplaceAll(body, "\u202f", "\u00a0")
		for _, text := range want {
			check.Contains(t, body, text, target)
		}
	}
	cfg := config("")
	cfg.Contact = ""
	if body, _ := get(t, serve(t, cfg), "/en/contact", "text/html"); !strings.Contains(body, "Write to the operator of this server.") {
		t.Error("got no words for a missing address, want some")
	}
	cfg.Contact = "https://help.example/form"
	if body, _ := get(t, serve(t, cfg), "/fr/contact", "text/html"); !strings.Contains(body, `<a href="https://help.example/form">`) {
		t.Error("got no link to the contact form, want one")
	}
}

// The About page states what is known and leaves out the rest.
func TestAbout(t *testing.T) {
	cfg := config("")
	cfg.Facts = prose.Facts{Publisher: "Ana <b>*Éditions*</b>", Address: "3 rue de l'Encre, Paris", Registration: "RCS Paris 1", Director: "Ana Martin", Host: "Hôte", HostPhone: "+33 2"}
	handler := serve(t, cfg)
	for target, want := range map[string][]string{
		"/en/about": {"<strong>Publisher:</strong> Ana &lt;b&gt;*Éditions*&lt;/b&gt;, 3 rue de l'Encre, Paris<", "<strong>Registration:</strong> RCS Paris 1<", "<strong>Director of publication:</strong> Ana Martin<", "<strong>Hosting company:</strong> Hôte, +33\u00a02<", `<a href="mailto:hello@palmares.example">`, `href="/en/method"`, `href="/en/licence"`, `href="/en/pricing"`},
		"/fr/about": {"<h1 id=", "À propos et mentions légales", "<strong>Éditeur\u00a0:</strong> Ana", "l’Encre", "<strong>Directeur de la publication\u00a0:</strong> Ana Martin<", "<strong>Hébergeur\u00a0:</strong> Hôte, +33\u00a02<", `href="/fr/method"`},
	} {
		body, _ := get(t, handler, target, "text/html")
		for _, text := range want {
			check.Contains(t, body, text, target)
		}
		for _, absent := range []string{"Share capital", "Capital social", "VAT number", "Numéro de TVA", "demo", "démonstration"} {
			if strings.Contains(body, absent) {
				t.Errorf("%s: got %q, want it left out", target, absent)
			}
		}
		check.Contains(t, body, `<li><a href="`+target+`">`, "%s: link to it in the footer", target)
	}
	cfg = config("")
	cfg.Contact = ""
	if body, _ := get(t, serve(t, cfg), "/en/about", "text/html"); !strings.Contains(body, "has not provided these details") || strings.Contains(body, "Publisher:") {
		t.Error("got no words for missing facts, want some")
	}
	cfg.Facts, cfg.Demo = prose.DemoFacts, true
	for target, want := range map[string]string{"/en/about": "€1,000<", "/fr/about": "1\u00a0000\u00a0€<"} {
		body, _ := get(t, serve(t, cfg), target, "text/html")
		check.Contains(t, strings.ReplaceAll(body, "\u202f", "\u00a0"), want, target)
	}
	for target, want := range map[string]string{"/en/about": "This is a demo", "/fr/about": "Ceci est une démonstration"} {
		if body, _ := get(t, serve(t, cfg), target, "text/html"); !strings.Contains(body, want) || !strings.Contains(body, prose.DemoFacts.Director) {
			t.Errorf("%s: got facts of the demo without %q, want it", target, want)
		}
	}
}

func TestReadFacts(t *testing.T) {
	for text, want := range map[string]struct {
		facts prose.Facts
		err   string
	}{
		"":            {},
		"# nothing\n": {},
		"publisher-name: ' L''Encre: SAS '\nhosting-phone: +33 2\npublisher-vat: 0012\npublisher-phone:\n": {prose.Facts{Publisher: "L'Encre: SAS", HostPhone: "+33 2", VAT: "0012"}, ""},
		"PUBLISHER_NAME: Ana":              {err: "PUBLISHER_NAME: no fact has this name; use one of publisher-name, publisher-address"},
		"hosting-name: \"a\\nb\"":          {err: "hosting-name: must be text on one line"},
		"hosting-name: |\n  a\n  b\n":      {err: "hosting-name: must be text on one line"},
		"hosting-name: [a]":                {err: "hosting-name: must be text on one line"},
		"hosting-name: a\nhosting-name: b": {err: `lines such as "publisher-name: NAME": yaml: `},
		"hosting-name: a: b":               {err: `lines such as "publisher-name: NAME": yaml: `},
		"Ana":                              {err: `lines such as "publisher-name: NAME": yaml: `},
		"security-contact: ana@example.com\nsecurity-expires: 2027-06-30": {prose.Facts{SecurityContact: "ana@example.com", SecurityExpires: "2027-06-30"}, ""},
		"security-contact: http://example.com":                            {err: `security-contact: must be an email address or an https URL (got "http://example.com")`},
		"security-expires: 30.6.2027":                                     {err: `security-expires: must have the form 2027-06-30 (got "30.6.2027")`},
		strings.Repeat("#", 1<<20+1):                                      {err: "the file has 1048577 bytes; at most 1048576 are allowed"},
	} {
		folder := t.TempDir()
		file := filepath.Join(folder, "facts.yml")
		check.OK(t, os.WriteFile(file, []byte(text), 0o600))
		got, err := prose.ReadFacts(folder)
		switch {
		case want.err != "" && (err == nil || !strings.HasPrefix(err.Error(), file+": ") || !strings.Contains(err.Error(), want.err)):
			t.Errorf("%.40q: got error %v, want the file and %q", text, err, want.err)
		case want.err == "" && (err != nil || got != want.facts):
			t.Errorf("%.40q: got %+v, %v, want %+v", text, got, err, want.facts)
		}
	}
	for _, folder := range []string{"", t.TempDir()} {
		if got, err := prose.ReadFacts(folder); err != nil || len(got.Missing()) != 7 {
			t.Errorf("without a file: got %+v, %v, want no facts", got, err)
		}
	}
}

func TestSecurityProblem(t *testing.T) {
	now := time.Date(2027, 6, 1, 12, 0, 0, 0, time.UTC)
	for expires, want := range map[string]string{"": "is missing", "2027-06-01": "expired on 2027-06-01", "2027-06-30": "expires on 2027-06-30", "2027-07-02": ""} {
		got := prose.Facts{SecurityContact: "ana@example.com", SecurityExpires: expires}.SecurityProblem(now)
		check.Contains(t, got, want, "%q", expires)
		check.Equal(t, (got == ""), (want == ""), "%q", expires)
	}
}

func TestOwnTexts(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		check.OK(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	write("terms.fr.md", "# Nos conditions\r\n\r\nTexte de [nous](/contact), {{ service }}.\r\n\r\n<script>alert(1)</script>\n\n[x](javascript:alert(1)) {{plans}}\n")
	write("notes.txt", "not a page")
	handler := serve(t, config(folder))
	body, _ := get(t, handler, "/fr/terms", "text/html")
	for _, want := range []string{`<h1 id="nos-conditions">Nos conditions`, `href="/fr/contact"`, `content="Texte de nous, Palma &#34;res&#34; &lt;x&gt;."`} {
		check.Contains(t, body, want, "no")
	}
	if strings.Contains(body, "<script>alert") || strings.Contains(body, `href="javascript:`) {
		t.Error("got raw HTML or a script link, want them left out")
	}
	if body, _ := get(t, handler, "/en/terms", "text/html"); !strings.Contains(body, "Terms of use") {
		t.Error("got no default text in English, want it")
	}

	for name, want := range map[string]struct{ text, message string }{
		"facts.yaml":    {"publisher-name: Ana", "the server reads no file of this name; use one of facts.yml"},
		"terms.de.md":   {"# Bedingungen\n\nText.", "the server reads no file of this name; use one of facts.yml, about.en.md"},
		"contact.en.md": {"Contact\n\nText.", "the first line must be a title"},
		"privacy.en.md": {"# Privacy\n", "a paragraph must follow the title"},
		"licence.en.md": {"# License\n\nBy {{nobody}}.", "the placeholder {{nobody}} is unknown"},
		"method.en.md":  {"# Method\n\n\xff", "not valid UTF-8"},
		"pricing.en.md": {"# Plans\n\nText.\n\n```\ncode\n```\n", "a code block has no language"},
	} {
		write(name, want.text)
		if _, err := prose.New(config(folder)); err == nil || !strings.Contains(err.Error(), want.message) || !strings.Contains(err.Error(), filepath.Join(folder, name)) {
			t.Errorf("%s: got error %v, want the file and %q", name, err, want.message)
		}
		check.OK(t, os.Remove(filepath.Join(folder, name)))
	}
	if _, err := prose.New(config(filepath.Join(folder, "none"))); err == nil || !strings.Contains(err.Error(), "PALMARES_PAGES_DIR") {
		t.Errorf("missing folder: got error %v, want the name of the setting", err)
	}
}
