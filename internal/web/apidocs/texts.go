package apidocs

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"text/template"

	"palmares/internal/catalog/journal"
	"palmares/internal/core/cache"
	"palmares/internal/web/page"
	"palmares/rest"
)

const explorerText = ExplorerPath + page.MarkdownSuffix

// textTemplates are the texts; that of llms.txt is in the form of llmstxt.org.
var textTemplates = template.Must(template.New("").Funcs(template.FuncMap{"contains": strings.Contains}).ParseFS(assets, "templates/texts.md"))

//go:embed worked/*.graphql
var workedFiles embed.FS

// worked are the queries that the texts show with their results.
var worked = readExamples(workedFiles, "worked")

// textData is the data of the text templates.
type textData struct {
	Config
	Categories []string
	Events     []string // types with a JSON Schema
	Examples   []Example
	SchemaPath string
	Worked     []workedQuery
}

// workedQuery is a query and its result; "" if the catalog cannot be read.
type workedQuery struct {
	Example
	Result string
}

// showText sends one of the texts.
func (p *Pages) showText(w http.ResponseWriter, r *http.Request, path string) error {
	return p.withSamples(w, r, path, func(ctx context.Context, operations []rest.Operation, samples *rest.Samples) (*cache.Entry, error) {
		data := textData{Config: p.Config, Categories: samples.Categories, Events: journal.SchemaTypes, Examples: Examples, SchemaPath: SchemaPath}
		data.Operations = operations
		for _, example := range worked {
			result := ""
			if samples.Release > 0 && (path == MarkdownPath || path == LLMsFullPath) {
				found, err := p.Run(ctx, example.Query)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", example.Title, err)
				}
				var indented bytes.Buffer
				if err := json.Indent(&indented, found, "", "  "); err != nil {
					return nil, err
				}
				result = indented.String()
			}
			data.Worked = append(data.Worked, workedQuery{example, result})
		}
		text, contentType := bytes.Buffer{}, page.MarkdownType
		if path == LLMsPath || path == LLMsFullPath {
			contentType = "text/plain; charset=utf-8"
		}
		err := textTemplates.ExecuteTemplate(&text, path, data)
		return cache.NewEntry(text.Bytes(), http.Header{
			"Content-Type": {contentType}, "Cache-Control": {"no-cache"}, "Vary": {page.Vary},
		}), err
	})
}
