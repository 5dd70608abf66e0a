package graph

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"palmares/ent"
	"palmares/ent/tool"
	"palmares/graph/model"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

// maxSyncPage is lower than the limit of other lists because documents are long.
const maxSyncPage = 100

// EmbeddingsSync lists the documents of the embeddings set, or the differences
// between the release of a token and the one being read, so that a client ends up
// with the same set however long it waited.
func (queryResolver) EmbeddingsSync(ctx context.Context, category, sync *string, page, limit int) (*model.EmbeddingsSyncPage, error) {
	r := readerFrom(ctx)
	if err := cmp.Or(params.CheckRange("limit", limit, 1, maxSyncPage), checkSlugs(argument{"category", category})); err != nil {
		return nil, err
	}
	if category != nil && *category == "" {
		return nil, problem.New(problem.BadInput, "category must not be empty.")
	}
	changes, err := r.documentChanges(ctx, syncRequest{orZero(category), orZero(sync)})
	documents := &list[documentChange, model.EmbeddingsChange]{err: err, items: changes, nodes: r.fillDocumentChanges}
	items, meta, err := documents.page(ctx, page, limit)
	if err != nil {
		return nil, err
	}
	found := &model.EmbeddingsSyncPage{Items: items, Meta: meta}
	if page >= meta.Pages && r.release != nil {
		token := syncToken{r.release.ID, r.release.ImportedAt.UnixMicro(), orZero(category)}.String()
		found.NextSync = &token
	}
	return found, nil
}

// syncRequest selects all documents or those of a category and, with a token, only
// what changed since then.
type syncRequest struct{ category, token string }

// documentChange is a tool whose document is to be stored, or deleted for a
// reason.
type documentChange struct {
	slug   string
	reason model.EmbeddingsDeletionReason // empty if it is to be stored
}

// documentChanges returns the documents to store and to delete, sorted by slug.
func (r *reader) documentChanges(ctx context.Context, req syncRequest) ([]documentChange, error) {
	if known, ok := r.syncs[req]; ok {
		return known, nil
	}
	var former map[string]*ent.Tool
	since := 0
	if req.token != "" {
		token, err := r.checkToken(ctx, req)
		if err != nil {
			return nil, err
		}
		if since = token.release; since < r.release.ID {
			if former, err = r.previousDocuments(ctx, since); err != nil {
				return nil, err
			}
		}
	}
	var changes []documentChange
	var members []int // whose documents may have changed
	for i, t := range r.index.tools {
		if t.inEmbeddings && t.active() && t.since > since && req.includes(t.category) {
			members = append(members, i)
		}
	}
	entities, err := r.entities(ctx, members, false)
	if err != nil {
		return nil, err
	}
	for i, position := range members {
		slug := r.index.tools[position].slug
		row := former[slug]
		if row == nil || !req.includes(row.CategorySlug) || !sameDocument(toolFields.model(row), entities[i].tool) || row.SectionsHash != entities[i].sectionsHash {
			changes = append(changes, documentChange{slug: slug})
		}
	}
	for slug, row := range former {
		if reason := r.deletionReason(slug, req); reason != "" && req.includes(row.CategorySlug) {
			changes = append(changes, documentChange{slug, reason})
		}
	}
	slices.SortFunc(changes, func(a, b documentChange) int { return strings.Compare(a.slug, b.slug) })
	r.syncs[req] = changes
	return changes, nil
}

// previousDocuments returns the tools that had a document in an earlier release, by
// slug.
func (r *reader) previousDocuments(ctx context.Context, release int) (map[string]*ent.Tool, error) {
	earlier := store.WithEarlier(ctx, release)
	newest, err := store.NewestRelease(earlier, r.client.Release)
	if err != nil {
		return nil, err
	}
	// In the same transaction: if deletions were missed, a client's set would stay
	// wrong.
	if release < newest.HistoryFrom {
		return nil, problem.New(problem.Gone, "sync is from release %d, which is no longer available. The oldest available release is %d. %s", release, newest.HistoryFrom, startOver)
	}
	rows, err := r.client.Tool.Query().Where(tool.InEmbeddings(true)).All(earlier)
	former := map[string]*ent.Tool{}
	for _, row := range rows {
		former[row.ID] = row
	}
	return former, err
}

func (req syncRequest) includes(category string) bool {
	return req.category == "" || req.category == category
}

// sameDocument compares the metadata of two versions of a document.
func sameDocument(a, b *model.Tool) bool {
	same := func(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }
	return a.Name == b.Name && reviewURL(a) == reviewURL(b) && a.CategorySlug == b.CategorySlug && a.UpdatedAt == b.UpdatedAt &&
		same(a.Score, b.Score) && same(a.Verifiability, b.Verifiability)
}

// deletionReason returns why a tool has no document in the selected part of the
// set, or "" if it has one.
func (r *reader) deletionReason(slug string, req syncRequest) model.EmbeddingsDeletionReason {
	i, exists := r.index.find(slug)
	switch {
	case !exists:
		return model.EmbeddingsDeletionReasonRemoved
	case !r.index.tools[i].active():
		return model.EmbeddingsDeletionReasonRetired
	case !r.index.tools[i].inEmbeddings:
		return model.EmbeddingsDeletionReasonLeftSet
	case !req.includes(r.index.tools[i].category):
		return model.EmbeddingsDeletionReasonLeftFilter
	}
	return ""
}

// fillDocumentChanges reads the documents of a page.
func (r *reader) fillDocumentChanges(ctx context.Context, changes []documentChange, s selection) ([]model.EmbeddingsChange, error) {
	var positions []int
	for _, c := range changes {
		if i, ok := r.index.find(c.slug); ok && c.reason == "" {
			positions = append(positions, i)
		}
	}
	entities, err := r.entities(ctx, positions, false)
	if err != nil {
		return nil, err
	}
	tools := mapSlice(entities, func(e *entity) *model.Tool { t := *e.tool; return &t })
	if err := r.fillEmbeddings(ctx, tools, entities, s.as([]string{"EmbeddingsDocument", "EmbeddingsChange"})); err != nil {
		return nil, err
	}
	filled := make([]model.EmbeddingsChange, len(changes))
	for i, c := range changes {
		if c.reason != "" {
			filled[i] = &model.EmbeddingsDeletion{Slug: c.slug, Deleted: true, Reason: c.reason}
			continue
		}
		filled[i], tools = tools[0].Embeddings, tools[1:]
	}
	return filled, nil
}

// syncToken identifies what a client has: the documents of a category, or all, in
// a release. The time distinguishes the release from one of another database with
// the same number.
type syncToken struct {
	release     int
	publishedAt int64 // in microseconds
	category    string
}

// String returns the token with a checksum, so that a truncated or mistyped token is
// not mistaken for another.
func (t syncToken) String() string {
	text := strconv.Itoa(t.release) + " " + strconv.FormatInt(t.publishedAt, 10) + " " + t.category
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(append(sum[:6], text...))
}

const maxSyncToken = 2 * maxSlugText

// parseSyncToken parses a token and reports whether it is valid.
func parseSyncToken(text string) (t syncToken, ok bool) {
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
	t = syncToken{release, at, parts[2]}
	return t, cmp.Or(err1, err2) == nil && t.release > 0 && t.String() == text
}

const startOver = "Read the whole set again without sync."

// checkToken returns the token of a request if the changes since then are available.
func (r *reader) checkToken(ctx context.Context, req syncRequest) (syncToken, error) {
	token, ok := parseSyncToken(req.token)
	switch {
	case !ok:
		return token, problem.New(problem.BadInput, "sync must be the token of an earlier response, complete and unchanged (got %q). If you have none, read the whole set without sync.", params.Truncate(req.token))
	case token.category != req.category:
		return token, problem.New(problem.BadInput, "sync was issued for %s (got %s). Send the same category again, or read the whole set without sync.",
			describeCategory(token.category), describeCategory(req.category))
	}
	if r.release == nil {
		return token, problem.New(problem.Gone, "sync is from a release that this catalog does not have. %s", startOver)
	}
	if token.release > r.release.ID {
		if r.pinned {
			return token, problem.New(problem.BadInput, "sync is from release %d, which is newer than release %d. Read the newest release instead.", token.release, r.release.ID)
		}
		if !store.InTransaction(ctx) { // another server may have just published it
			return token, store.ErrNeedsTransaction
		}
		return token, problem.New(problem.Gone, "sync is from release %d, which this catalog does not have. %s", token.release, startOver)
	}
	release := r.index.releases[min(r.release.ID-token.release, len(r.index.releases)-1)]
	if release.ID != token.release || release.ImportedAt.UnixMicro() != token.publishedAt {
		return token, problem.New(problem.Gone, "sync is from release %d of %s, which this catalog does not have. %s",
			token.release, time.UnixMicro(token.publishedAt).UTC().Format(time.DateTime), startOver)
	}
	return token, nil
}

func describeCategory(slug string) string {
	if slug == "" {
		return "all categories"
	}
	return "category=" + params.Truncate(slug)
}
