package rest

import (
	"bytes"
	"context"

	"palmares/graph"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

// reasonWhy says what an empty result means, given what is known of the slug.
type reasonWhy func(slug string, is whereabouts) string

// whereabouts is what a slug that was not found is otherwise.
type whereabouts struct{ active, retired bool }

func noTool(slug string, is whereabouts) string {
	if is.retired {
		return "The tool " + slug + " is retired: /api/v1/cimetiere says why."
	}
	return "No tool has the slug " + slug + "."
}

func noComparison(slug string, _ whereabouts) string {
	return "No published comparison has the slug " + slug + "."
}

func noDocument(slug string, is whereabouts) string {
	if is.active {
		return "The tool " + slug + " is not among the top 300 that have embeddings."
	}
	return noTool(slug, is)
}

// notFound asks once more, to answer with the reason. Where another release
// came in between, it may have the slug: then all is asked again.
func (h *Handler) notFound(ctx context.Context, e *endpoint, variables map[string]any, release int) (*cache.Entry, int, error) {
	slug := variables["slug"].(string)
	answer := h.executor.Execute(ctx, graph.Request{Operation: h.whereabouts, Variables: map[string]any{"slug": slug}})
	if p := answer.Problem(); p != nil {
		return nil, 0, p
	}
	if answer.Release != release {
		return h.answer(ctx, e, variables)
	}
	return nil, release, problem.New(problem.NotFound, "%s", e.missing(cut(slug), whereabouts{
		active:  !bytes.Contains(answer.Data, []byte(`"tool":null`)),
		retired: !bytes.Contains(answer.Data, []byte(`"retired":null`)),
	}))
}
