package prose

import (
	"errors"
	"fmt"
	"html"
	htmltemplate "html/template"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"unicode/utf8"

	"palmares/internal/core/lang"
	"palmares/internal/core/params"
	"palmares/internal/web/page"
)

// TextNames are the names of the pages about the service, which are also their paths.
var TextNames = []string{"about", "method", "pricing", "terms", "privacy", "licence", "contact"}

const maxFile = 1 << 20 // bytes

// addTexts adds the pages about the service, with the operator's files in place of ours.
func (p *Pages) addTexts(l lang.Language, own map[string]string) error {
	values := p.values(l)
	for _, name := range TextNames {
		file := fileName(name, l)
		source, replaced := own[file]
		if replaced {
			file = filepath.Join(p.Folder, file)
		} else {
			source = embedded("texts/" + file)
		}
		if err := p.addText(l, "/"+name, source, values); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

func fileName(name string, l lang.Language) string {
	return name + "." + string(l) + page.MarkdownSuffix
}

// readFolder returns the operator's texts and facts by file name. Markdown and YAML
// files with another name are most likely misspelled.
func readFolder(folder string) (map[string]string, error) {
	texts, known := map[string]string{}, []string{factsFile}
	if folder == "" {
		return texts, nil
	}
	for _, name := range TextNames {
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
		content, err := os.ReadFile(path) //nolint:gosec // the operator chose the folder
		if err != nil {
			return nil, fmt.Errorf("%s: the file cannot be read: %w", path, reason(err))
		}
		if len(content) > maxFile {
			return nil, fmt.Errorf("%s: the file has %d bytes; at most %d are allowed", path, len(content), maxFile)
		}
		texts[entry.Name()] = string(content)
	}
	return texts, nil
}

// reason returns why a file cannot be read, without its path.
func reason(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	return err
}

// placeholder finds what is to be filled in.
var placeholder = regexp.MustCompile(`\{\{\s*([\w.]*)\s*\}\}`)

// fill replaces placeholders by their values.
func fill(source string, values map[string]string) (filled string, err error) {
	filled = placeholder.ReplaceAllStringFunc(source, func(found string) string {
		value, ok := values[placeholder.FindStringSubmatch(found)[1]]
		if !ok {
			err = fmt.Errorf("the placeholder %s is unknown", found)
		}
		return value
	})
	return filled, err
}

// addText adds a page, and renders it to find mistakes of the operator at once.
func (p *Pages) addText(l lang.Language, path, source string, values map[string]string) error {
	if !params.IsText(source) || !utf8.ValidString(source) {
		return errors.New("the text is not valid UTF-8")
	}
	filled, err := fill(strings.TrimPrefix(strings.ReplaceAll(source, "\r\n", "\n"), "\ufeff"), values)
	if err != nil {
		return err
	}
	var data struct {
		Title, Summary string
		Content        htmltemplate.HTML
	}
	if data.Title, data.Summary, err = parseHead(filled); err != nil {
		return err
	}
	if data.Content, err = Render(l, filled); err != nil {
		return err
	}
	p.add(l, path, "text", strings.TrimSpace(page.AbsoluteLinks(l, p.PublicURL, filled))+"\n", func() (any, error) { return data, nil })
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
		"pro_price": l.Euros(p.Plans.Pro.MonthlyEuros), "uptime": l.Text("%d%%", p.Plans.Pro.Uptime),
	}
}

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
	functions := template.FuncMap(page.Functions(l))
	functions["euros"] = l.Euros
	var table strings.Builder
	err := template.Must(template.New("").Funcs(functions).Parse(embedded("templates/plans.txt"))).
		Execute(&table, []page.Plan{p.Plans.Anonymous, p.Plans.Developer, p.Plans.Pro})
	if err != nil {
		panic(err) // a mistake in the template
	}
	return strings.TrimSpace(table.String())
}
