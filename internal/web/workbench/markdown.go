package workbench

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"palmares/internal/core/cache"
)

func (w *Workbench) showMarkdown(to http.ResponseWriter, r *http.Request) error {
	entry, err := w.sampled(r.Context(), MarkdownPath, func(_ context.Context, operations []Operation) (*cache.Entry, error) {
		return cache.NewEntry(markdownOf(w.Config, operations), http.Header{
			"Content-Type":  {"text/markdown; charset=utf-8"},
			"Cache-Control": {"no-cache"},
			"Vary":          {"Accept, Accept-Encoding"},
		}), nil
	})
	if err != nil {
		return err
	}
	return entry.Write(to, r)
}

// markdownOf is the reference for who reads text: every path, what it takes
// and what it stands for.
func markdownOf(cfg Config, operations []Operation) []byte {
	var text strings.Builder
	fmt.Fprintf(&text, "# API reference of %s\n\n", cfg.ServiceName)
	fmt.Fprintf(&text, "All paths are GET and answer with JSON; an error is `{\"error\": \"…\"}`. The OpenAPI document is at %s%s. Reuse of the data must show: %s\n", cfg.PublicURL, cfg.Document, cfg.Credit)
	for _, o := range operations {
		fmt.Fprintf(&text, "\n## GET %s\n\n%s. %s", o.Path, o.Summary, o.Details)
		if o.Keyed {
			text.WriteString(" Needs an API key: `Authorization: Bearer YOUR_KEY`.")
		}
		text.WriteString("\n")
		if len(o.Parameters) > 0 {
			text.WriteString("\n")
		}
		for _, p := range o.Parameters {
			fmt.Fprintf(&text, "- `%s`: %s", p.Name, p.Description)
			if p.Preset != nil {
				fmt.Fprintf(&text, " By default `%v`.", p.Preset)
			}
			text.WriteString("\n")
		}
		fmt.Fprintf(&text, "\nExample: %s%s\n", cfg.PublicURL, o.Example)
	}
	return []byte(text.String())
}
