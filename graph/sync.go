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

	"palmares/graph/model"
	"palmares/internal/catalog/release"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

// maxSyncPage is lower than the limit of other lists because documents are long.
const maxSyncPage = 100

// EmbeddingsSync lists the documents of the embeddings set, or the differences
// between the release of a token and the one being read, so that a client ends up
// with the same set however long it waited.
func (queryResolver) EmbeddingsSync(
	ctx context.Context, category, sync *string, page, limit int,
) (*model.EmbeddingsSyncPage, error) {
	r := readerFrom(ctx)
	if err := cmp.Or(
		params.CheckRange("limit", limit, 1, maxSyncPage), checkSlugs(argument{"category", category}),
	); err != nil {
		return nil, err
	}
	if category != nil && *category == "" {
		return nil, problem.New(problem.BadInput, "category must not be empty.")
	}
	changes, err := r.documentChanges(ctx, syncRequest{orZero(category), orZero(sync)})
	documents := &list[documentChange, model.EmbeddingsChange]{err: err, items: changes, nodes: r.readDocumentChanges}
	items, meta, err := documents.page(ctx, page, limit)
	if err != nil {
		return nil, err
	}
	found := &model.EmbeddingsSyncPage{Items: items, Meta: meta}
	if info := r.release.Info; page >= meta.Pages && info != nil {
		token := syncToken{info.ID, info.ImportedAt.UnixMicro(), orZero(category)}.String()
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
	former := map[string]*release.Tool{}
	since := 0
	if req.token != "" {
		token, err := r.checkToken(ctx, req)
		if err != nil {
			return nil, err
		}
		if since = token.release; since < r.release.Number() {
			if oldest := r.release.HistoryFrom(); since < oldest {
				return nil, problem.New(problem.Gone,
					"sync is from release %d, which is no longer available. "+
						"The oldest available release is %d. %s", since, oldest, startOver)
			}
			for _, t := range r.release.HadDocument(since) {
				former[t.Slug] = t
			}
		}
	}
	var changes []documentChange
	for _, t := range r.release.Tools {
		if !t.InEmbeddings || !t.Active() || t.Since <= since || !req.includes(t.Category) {
			continue
		}
		if before := former[t.Slug]; before == nil || !req.includes(before.Category) ||
			!release.SameDocument(before, t) {
			changes = append(changes, documentChange{slug: t.Slug})
		}
	}
	for slug, t := range former {
		if reason := r.deletionReason(slug, req); reason != "" && req.includes(t.Category) {
			changes = append(changes, documentChange{slug, reason})
		}
	}
	slices.SortFunc(changes, func(a, b documentChange) int { return strings.Compare(a.slug, b.slug) })
	r.syncs[req] = changes
	return changes, nil
}

func (req syncRequest) includes(category string) bool {
	return req.category == "" || req.category == category
}

// deletionReason returns why a tool has no document in the selected part of the
// set, or "" if it has one.
func (r *reader) deletionReason(slug string, req syncRequest) model.EmbeddingsDeletionReason {
	t := r.release.Tool(slug)
	switch {
	case t == nil:
		return model.EmbeddingsDeletionReasonRemoved
	case !t.Active():
		return model.EmbeddingsDeletionReasonRetired
	case !t.InEmbeddings:
		return model.EmbeddingsDeletionReasonLeftSet
	case !req.includes(t.Category):
		return model.EmbeddingsDeletionReasonLeftFilter
	}
	return ""
}

// readDocumentChanges reads the documents of a page.
func (r *reader) readDocumentChanges(
	ctx context.Context, changes []documentChange, s selection,
) ([]model.EmbeddingsChange, error) {
	var found []*release.Tool
	for _, c := range changes {
		if c.reason == "" {
			found = append(found, r.release.Tool(c.slug))
		}
	}
	documents, err := r.readEmbeddings(ctx, found, s.as([]string{"EmbeddingsDocument", "EmbeddingsChange"}))
	if err != nil {
		return nil, err
	}
	return mapSlice(changes, func(c documentChange) model.EmbeddingsChange {
		if c.reason != "" {
			return &model.EmbeddingsDeletion{Slug: c.slug, Deleted: true, Reason: c.reason}
		}
		document := documents[0]
		documents = documents[1:]
		return document
	}), nil
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
		return token, problem.New(problem.BadInput,
			"sync must be the token of an earlier response, complete and unchanged (got %q). "+
				"If you have none, read the whole set without sync.", params.Truncate(req.token))
	case token.category != req.category:
		return token, problem.New(problem.BadInput,
			"sync was issued for %s (got %s). Send the same category again, or read the whole set without sync.",
			describeCategory(token.category), describeCategory(req.category))
	}
	if r.release.Info == nil {
		return token, problem.New(problem.Gone, "sync is from a release that this catalog does not have. %s", startOver)
	}
	if token.release > r.release.Number() {
		if r.pinned {
			return token, problem.New(problem.BadInput,
				"sync is from release %d, which is newer than release %d. "+
					"Read the newest release instead.", token.release, r.release.Number())
		}
		if err := r.checkNewer(ctx, token); err != nil {
			return token, err
		}
		return token, problem.New(problem.Gone, "sync is from release %d, which this catalog does not have. %s",
			token.release, startOver)
	}
	info := r.release.All[min(r.release.Number()-token.release, len(r.release.All)-1)]
	if info.ID != token.release || info.ImportedAt.UnixMicro() != token.publishedAt {
		return token, problem.New(problem.Gone, "sync is from release %d of %s, which this catalog does not have. %s",
			token.release, time.UnixMicro(token.publishedAt).UTC().Format(time.DateTime), startOver)
	}
	return token, nil
}

// checkNewer returns an error for a token of a release that another server has
// published and this one has not loaded yet.
func (r *reader) checkNewer(ctx context.Context, token syncToken) error {
	newest, err := store.NewestRelease(ctx, r.database().Release)
	if err == nil && newest != nil && newest.ID >= token.release {
		return problem.New(problem.Unavailable, "Release %d is being loaded. Try again in a few seconds.",
			token.release)
	}
	return err
}

func describeCategory(slug string) string {
	if slug == "" {
		return "all categories"
	}
	return "category=" + params.Truncate(slug)
}
