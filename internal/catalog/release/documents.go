package release

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
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

// SyncToken identifies what a client has: the documents of a category, or all, in
// a release. The time distinguishes the release from one of another database with
// the same number.
type SyncToken struct {
	Release     int
	PublishedAt int64 // in microseconds
	Category    string
}

// String returns the token with a checksum, so that a truncated or mistyped token is
// not mistaken for another.
func (t SyncToken) String() string {
	text := strconv.Itoa(t.Release) + " " + strconv.FormatInt(t.PublishedAt, 10) + " " + t.Category
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(append(sum[:6], text...))
}

const maxSyncToken = 1_000 // bytes

// ParseSyncToken parses a token and reports whether it is valid.
func ParseSyncToken(text string) (t SyncToken, ok bool) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(text) > maxSyncToken || len(data) < 6 {
		return t, false
	}
	parts := strings.SplitN(string(data[6:]), " ", 3)
	if len(parts) != 3 {
		return t, false
	}
	release, err1 := strconv.Atoi(parts[0])
	at, err2 := strconv.ParseInt(parts[1], 10, 64)
	t = SyncToken{release, at, parts[2]}
	return t, cmp.Or(err1, err2) == nil && t.Release > 0 && t.String() == text
}
