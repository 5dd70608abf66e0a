package rest

import (
	"context"
	"encoding/json"

	"palmares/auth"
	"palmares/graph"
)

// samples are slugs to try the paths with, by what a path asks for.
type samples map[string]string

// What a path can ask for.
const (
	aTool       = "a tool"
	aPriceStory = "a tool whose price changed"
	aDocument   = "a tool with a document"
	aComparison = "a comparison"
)

// demoSamples are the demo catalog's, for where there is no other.
var demoSamples = samples{
	aTool: "bosco-et-matelots", aPriceStory: "bosco-et-matelots", aDocument: "bosco-et-matelots", aComparison: "bosco-et-matelots-vs-ruche-12",
}

// Samples are paths of the newest release to try, by the path of the table,
// and that release; 0 where it has nothing to try.
func (h *Handler) Samples(ctx context.Context) (tries map[string]string, release int, err error) {
	found, answer, err := h.samples(ctx)
	if err != nil {
		return nil, 0, err
	}
	tries = map[string]string{}
	for _, e := range h.paths {
		tries[e.path] = e.tryPath(found)
	}
	return tries, answer.Release, nil
}

// samples looks slugs up: the best tool that has what is asked for, or else
// the best of all, and the newest comparison.
func (h *Handler) samples(ctx context.Context) (samples, *graph.Answer, error) {
	// Whether a tool has a document is not for everybody to read, but no secret.
	ctx = auth.WithCaller(ctx, auth.Caller{Plan: auth.Developer})
	answer := h.executor.Execute(ctx, graph.Request{Operation: h.sampling})
	if p := answer.Problem(); p != nil {
		return nil, nil, p
	}
	var read struct {
		Tools struct {
			Items []struct {
				Slug         string
				PriceHistory []struct{}
				Embeddings   *struct{}
			}
		}
		Comparisons struct{ Items []struct{ Slug string } }
	}
	if err := json.Unmarshal(answer.Data, &read); err != nil {
		return nil, nil, err
	}
	found := samples{}
	offer := func(what, slug string, fits bool) {
		if found[what] == "" && fits {
			found[what] = slug
		}
	}
	for _, tool := range read.Tools.Items {
		offer(aTool, tool.Slug, true)
		offer(aPriceStory, tool.Slug, len(tool.PriceHistory) > 0)
		offer(aDocument, tool.Slug, tool.Embeddings != nil)
	}
	for _, what := range []string{aPriceStory, aDocument} {
		offer(what, found[aTool], true)
	}
	for _, comparison := range read.Comparisons.Items {
		offer(aComparison, comparison.Slug, true)
	}
	for what, slug := range demoSamples {
		offer(what, slug, true)
	}
	return found, answer, nil
}
