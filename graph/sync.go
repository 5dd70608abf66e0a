package graph

import (
	"cmp"
	"context"

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
		params.CheckRange("limit", limit, 1, maxSyncPage), params.CheckSlug("category", orZero(category)),
	); err != nil {
		return nil, err
	}
	if category != nil && *category == "" {
		return nil, problem.New(problem.BadInput, "category must not be empty.")
	}
	since, err := 0, error(nil)
	if orZero(sync) != "" {
		since, err = r.SyncedRelease(*sync, orZero(category), r.Pinned, func() (number int, err error) {
			newest, err := store.NewestRelease(ctx, r.database().Release)
			if newest != nil {
				number = newest.ID
			}
			return number, err
		})
	}
	documents := &list[release.DocumentChange, model.EmbeddingsChange]{
		err: err, items: r.DocumentChanges(orZero(category), since), nodes: r.EmbeddingsChanges,
	}
	r.noteCategory(category, len(documents.items) == 0)
	items, meta, err := documents.page(ctx, page, limit)
	if err != nil {
		return nil, err
	}
	found := &model.EmbeddingsSyncPage{Items: items, Meta: meta}
	if info := r.Info; page >= meta.Pages && info != nil {
		token := release.SyncToken{
			Release: info.ID, PublishedAt: info.ImportedAt.UnixMicro(), Category: orZero(category),
		}.String()
		found.NextSync = &token
	}
	return found, nil
}
