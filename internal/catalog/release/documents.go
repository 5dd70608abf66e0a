package release

import (
	"slices"
	"strings"
)

// DocumentChange is an embeddings document that a client has to store or to delete.
type DocumentChange struct {
	Slug   string
	Reason string // why it has to be deleted; empty if it has to be stored
}

// The reasons to delete an embeddings document.
const (
	DocumentRemoved    = "removed"
	DocumentRetired    = "retired"
	DocumentLeftSet    = "left_set"
	DocumentLeftFilter = "left_filter"
)

// DocumentChanges returns how the embeddings documents of a category, or all for "",
// differ from those of an earlier release, or from none for 0. They are ordered by
// slug.
func (r *Release) DocumentChanges(category string, since int) (changes []DocumentChange) {
	included := func(t *Tool) bool { return category == "" || category == t.Category }
	former := map[string]*Tool{}
	if since > 0 && since < r.Number() {
		for _, t := range at(r.history.tools, since) {
			if t.InEmbeddings && t.Active() && included(t) {
				former[t.Slug] = t
			}
		}
	}
	for _, t := range r.Tools {
		if before := former[t.Slug]; t.InEmbeddings && t.Active() && t.Since > since && included(t) &&
			(before == nil || before.document != t.document) {
			changes = append(changes, DocumentChange{Slug: t.Slug})
		}
	}
	for slug := range former {
		reason := ""
		switch t := r.Tool(slug); {
		case t == nil:
			reason = DocumentRemoved
		case !t.Active():
			reason = DocumentRetired
		case !t.InEmbeddings:
			reason = DocumentLeftSet
		case !included(t):
			reason = DocumentLeftFilter
		default:
			continue
		}
		changes = append(changes, DocumentChange{slug, reason})
	}
	slices.SortFunc(changes, func(a, b DocumentChange) int { return strings.Compare(a.Slug, b.Slug) })
	return changes
}
