package graph

import (
	"maps"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"palmares/internal/catalog/release"
	"palmares/internal/core/params"
)

// resolveDates returns variables without relative dates, so that the same operation has the
// same result for a release on every day; nil if there are none.
func resolveDates(definitions ast.VariableDefinitionList, variables map[string]any, of *release.Release) (resolved map[string]any) {
	for _, definition := range definitions {
		text, _ := variables[definition.Variable].(string)
		if definition.Type.Name() != "Date" || !params.IsRelativeDate(text) {
			continue
		}
		latest, previous := time.Now().UTC().Format(time.DateOnly), "" // before the first release
		if releases := of.All; len(releases) > 0 {
			latest, previous = releases[0].FeedDate, releases[min(1, len(releases)-1)].FeedDate
		}
		if resolved == nil {
			resolved = maps.Clone(variables)
		}
		resolved[definition.Variable] = params.ResolveDate(text, latest, previous)
	}
	return resolved
}
