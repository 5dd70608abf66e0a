package release

import (
	"reflect"
	"slices"
	"sync"

	"palmares/internal/core/text"
)

// toolNames finds tools by slugs that are spelled in a similar way.
type toolNames struct {
	tools []*Tool // the highest scores first, then retired ones
	slugs *text.Index
}

// SimilarTools returns active and retired tools whose slugs are similar to a text, the
// most similar first.
func (r *Release) SimilarTools(wanted string, limit int) (similar []*Tool) {
	names := Derived(r, func(r *Release) toolNames {
		tools := slices.Concat(r.Sorted(ByScore), r.Sorted(ByRetirement))
		slugs := make([]string, len(tools))
		for i, t := range tools {
			slugs[i] = t.Slug
		}
		return toolNames{tools, text.NewIndex(slugs)}
	})
	for _, i := range names.slugs.Similar(wanted, limit) {
		similar = append(similar, names.tools[i])
	}
	return similar
}

// Derived returns a value that is derived from a release on first use, and lives as
// long as the release. There is one value of each type.
func Derived[V any](r *Release, derive func(*Release) V) V {
	once, known := r.derived.Load(reflect.TypeFor[V]())
	if !known {
		once, _ = r.derived.LoadOrStore(reflect.TypeFor[V](), sync.OnceValue(func() V { return derive(r) }))
	}
	return once.(func() V)()
}
