package workbench

import (
	"context"
	"slices"

	"palmares/internal/core/cache"
)

// sampled is an answer that shows paths to try. It is made once for each
// release, whose own they are; where that cannot be read, they are the demo's.
func (w *Workbench) sampled(ctx context.Context, name string, show func(context.Context, []Operation) (*cache.Entry, error)) (*cache.Entry, error) {
	entry, err := w.Answers.Get(ctx, cache.Question{Operation: "workbench " + name}, func(ctx context.Context) (*cache.Entry, int, error) {
		samples, release, err := w.Samples(ctx)
		if err != nil {
			return nil, 0, err
		}
		entry, err := show(ctx, trying(w.Operations, samples))
		return entry, release, err
	})
	if err != nil {
		return show(ctx, w.Operations)
	}
	return entry.Entry, nil
}

// trying are the operations with other paths to try.
func trying(operations []Operation, samples map[string]string) []Operation {
	operations = slices.Clone(operations)
	for i := range operations {
		operations[i].Example = samples[operations[i].Path]
	}
	return operations
}
