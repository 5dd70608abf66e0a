// Package info serves the pages about the service itself: who is behind it, how
// tools are tested, plans, terms, privacy, license and contact. Their texts are Markdown, which an
// operator can replace.
package info

import (
	"embed"
	"errors"
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
	"palmares/internal/core/params"
	"palmares/internal/web/guide"
	"palmares/internal/web/page"
)

//go:embed texts/*.md
var defaults embed.FS

//go:embed templates
var files embed.FS

var templates = page.NewTemplates(files, "templates", nil)

// Names are the names of the pages, which are also their paths.
var Names = []string{"about", "method", "pricing", "terms", "privacy", "licence", "contact"}

// Config configures the pages.
type Config struct {
	page.Service
	ServiceURL string // in the credit line
	Folder     string // has files that replace texts, or ""
	Facts      Facts
	Demo       bool // the facts are not real
}

// Pages serves all pages, rendered once.
type Pages struct {
	Config
	documents page.Documents
}

// text is a text of a page, in one language.
type text struct {
	Title, Summary string
	Content        template.HTML
}

const maxFile = 1 << 20 // bytes

// Paths returns the paths of all pages.
func Paths() (paths []string) {
	for _, name := range Names {
		paths = append(paths, "/"+name)
	}
	return paths
}

// New reads and renders all texts. It returns an error that names the file if one
// is invalid.
func New(cfg Config) (*Pages, error) {
	p := &Pages{cfg, page.Documents{}}
	own, err := readFolder(cfg.Folder)
	if err != nil {
		return nil, err
	}
	for _, l := range lang.All {
		for _, name := range Names {
			file := fileName(name, l)
			source, replaced := own[file]
			if !replaced {
				content, err := defaults.ReadFile("texts/" + file)
				if err != nil {
					return nil, err
				}
				source = string(content)
			} else {
				file = filepath.Join(cfg.Folder, file)
			}
			if err := p.add(l, "/"+name, source); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return p, nil
}

func fileName(name string, l lang.Language) string {
	return name + "." + string(l) + page.MarkdownSuffix
}

// readFolder returns the operator's texts and facts by file name. Markdown and YAML
// files with another name are most likely misspelled.
func readFolder(folder string) (map[string]string, error) {
	texts := map[string]string{}
	if folder == "" {
		return texts, nil
	}
	known := []string{factsFile}
	for _, name := range Names {
		for _, l := range lang.All {
			known = append(known, fileName(name, l))
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("PALMARES_PAGES_DIR: the folder %s cannot be read: %w", folder, reason(err))
	}
	for _, entry := range entries {
		if !slices.Contains([]string{page.MarkdownSuffix, ".yml", ".yaml"}, filepath.Ext(entry.Name())) {
			continue
		}
		path := filepath.Join(folder, entry.Name())
		if !slices.Contains(known, entry.Name()) {
			return nil, fmt.Errorf("%s: the server reads no file of this name; use one of %s", path, strings.Join(known, ", "))
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("%s: the file cannot be read: %w", path, reason(err))
		}
		if info.Size() > maxFile {
			return nil, fmt.Errorf("%s: the file has %d bytes; at most %d are allowed", path, info.Size(), maxFile)
		}
		content, err := os.ReadFile(path) //nolint:gosec // the operator chose the folder
		if err != nil {
			return nil, fmt.Errorf("%s: the file cannot be read: %w", path, reason(err))
		}
		texts[entry.Name()] = string(content)
	}
	return texts, nil
}

// reason returns why a file cannot be read, without its path.
func reason(err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// placeholder finds what is to be filled in.
var placeholder = regexp.MustCompile(`\{\{\s*(\w*)\s*\}\}`)

// add renders a text.
func (p *Pages) add(l lang.Language, path, source string) error {
	if !params.IsText(source) || !utf8.ValidString(source) {
		return errors.New("the text is not valid UTF-8")
	}
	source = strings.TrimPrefix(strings.ReplaceAll(source, "\r\n", "\n"), "\ufeff")
	values, unknown := p.values(l), ""
	filled := placeholder.ReplaceAllStringFunc(source, func(found string) string {
		value, ok := values[placeholder.FindStringSubmatch(found)[1]]
		if !ok {
			unknown = found
		}
		return value
	})
	if unknown != "" {
		return fmt.Errorf("the placeholder %s is unknown", unknown)
	}
	var t text
	var err error
	if t.Title, t.Summary, err = parseHead(filled); err != nil {
		return err
	}
	if t.Content, err = guide.Render(l, filled); err != nil {
		return err
	}
	content := p.Content(l, path, page.Head{}, t)
	content.Markdown = page.MarkdownPath(path)
	html, err := templates.Entry("info", content, page.Caching)
	if err != nil {
		return err
	}
	markdown := page.AbsoluteLinks(l, p.PublicURL, filled)
	p.documents.Add(l, path, func() (*cache.Entry, error) { return html, nil }, page.TextEntry(strings.TrimSpace(markdown)+"\n"))
	return nil
}

// markup is what a description cannot have: links and emphasis.
var markup = regexp.MustCompile("\\[([^\\]]*)\\]\\([^)]*\\)|[*_`]")

// parseHead returns the title and the first paragraph, without markup.
func parseHead(text string) (title, summary string, err error) {
	first, rest, _ := strings.Cut(strings.TrimLeft(text, "\n"), "\n")
	title, found := strings.CutPrefix(first, "# ")
	title = strings.TrimSpace(title)
	if !found || title == "" {
		return "", "", errors.New(`the first line must be a title, such as "# Terms of use"`)
	}
	paragraph, _, _ := strings.Cut(strings.TrimLeft(rest, "\n"), "\n\n")
	summary = strings.Join(strings.Fields(markup.ReplaceAllString(paragraph, "$1")), " ")
	if summary == "" || strings.HasPrefix(summary, "#") {
		return "", "", errors.New("a paragraph must follow the title")
	}
	return title, summary, nil
}

// values returns what placeholders stand for.
func (p *Pages) values(l lang.Language) map[string]string {
	// Quotes and angle brackets in a name must not end the attribute.
	address, name := html.EscapeString(p.ServiceURL), html.EscapeString(p.ServiceName)
	return map[string]string{
		"service": p.ServiceName, "base": p.PublicURL, "contact": p.contact(l), "plans": p.plans(l), "facts": p.facts(l), "credit": p.Credit,
		"credit_html":        fmt.Sprintf(`Source : <a href="%s">%s</a>`, address, name),
		"credit_md":          fmt.Sprintf("Source : [%s](%s)", p.ServiceName, p.ServiceURL),
		"anonymous_requests": l.Number(p.Plans.Anonymous.DailyQuota), "developer_requests": l.Number(p.Plans.Developer.DailyQuota),
		"pro_price": l.Euros(p.Plans.Pro.MonthlyEuros), "uptime": percent(l, p.Plans.Pro.Uptime),
	}
}

func percent(l lang.Language, n int) string { return l.Text("%d%%", n) }

// contact returns a link, or words if there is no address.
func (p *Pages) contact(l lang.Language) string {
	switch {
	case p.Contact == "":
		return l.Text("the operator of this server")
	case strings.Contains(p.Contact, "://"):
		return fmt.Sprintf("[%s](%s)", p.Contact, p.Contact)
	}
	return fmt.Sprintf("[%s](mailto:%s)", p.Contact, p.Contact)
}

// plans returns a table of the plans.
func (p *Pages) plans(l lang.Language) string {
	all := []page.Plan{p.Plans.Anonymous, p.Plans.Developer, p.Plans.Pro}
	var table strings.Builder
	row := func(name string, cell func(page.Plan) string) {
		table.WriteString("| " + name + " |")
		for _, plan := range all {
			table.WriteString(" " + cell(plan) + " |")
		}
		table.WriteString("\n")
	}
	const none = "–"
	number := func(n int) string {
		if n == 0 {
			return none
		}
		return l.Number(n)
	}
	included := func(is bool) string {
		if is {
			return l.Text("included")
		}
		return none
	}
	fmt.Fprintf(&table, "| %s | %s | Developer | Pro |\n|---|---|---|---|\n", l.Text("What you get"), l.Text("No API key"))
	row(l.Text("Price"), func(plan page.Plan) string {
		if plan.MonthlyEuros == 0 {
			return l.Text("free")
		}
		return l.Text("%s per month plus VAT", l.Euros(plan.MonthlyEuros))
	})
	row(l.Text("Requests per day"), func(plan page.Plan) string {
		if plan.DailyQuota == 0 {
			return l.Text("unlimited")
		}
		return l.Number(plan.DailyQuota)
	})
	row(l.Text("REST, GraphQL, MCP and the full history"), func(page.Plan) string { return included(true) })
	row(l.Text("API keys"), func(plan page.Plan) string { return number(plan.Keys) })
	row(l.Text("Review texts for embeddings"), func(plan page.Plan) string { return included(plan.Embeddings) })
	row(l.Text("Downloads as CSV, Excel and NDJSON"), func(plan page.Plan) string { return included(plan.Downloads) })
	row(l.Text("Saved queries"), func(plan page.Plan) string { return number(plan.SavedQueries) })
	row(l.Text("Concurrent live streams"), func(plan page.Plan) string { return number(plan.Streams) })
	row(l.Text("Webhooks"), func(plan page.Plan) string { return included(plan.Webhooks) })
	row(l.Text("Uptime target"), func(plan page.Plan) string {
		if plan.Uptime == 0 {
			return none
		}
		return percent(l, plan.Uptime)
	})
	return strings.TrimSpace(table.String())
}

// ServeHTTP serves a page or its Markdown version. Its path is one of Paths.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page.Handler(func(w http.ResponseWriter, r *http.Request) error {
		return p.WriteDocument(w, r, p.documents[lang.Of(r.Context())][r.URL.Path])
	})(w, r)
}
