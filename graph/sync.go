package graph

import (
	"cmp"
	"context"
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
	changes, err := r.documentChanges(ctx, orZero(category), orZero(sync))
	documents := &list[release.DocumentChange, model.EmbeddingsChange]{
		err: err, items: changes, nodes: r.documents,
	}
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

// documentChanges returns the documents of a category, or all for "", that changed
// since the release of a token, or all without one.
func (r *reader) documentChanges(ctx context.Context, category, token string) ([]release.DocumentChange, error) {
	since := 0
	if token != "" {
		known, err := r.checkToken(ctx, token, category)
		if err != nil {
			return nil, err
		}
		since = known.Release
	}
	if oldest := r.HistoryFrom(); since > 0 && since < r.Number() && since < oldest {
		return nil, problem.New(problem.Gone,
			"sync is from release %d, which is no longer available. "+
				"The oldest available release is %d. %s", since, oldest, startOver)
	}
	if since > 0 && r.Partial() {
		return nil, release.ErrPartial
	}
	return r.DocumentChanges(category, since), nil
}

// documents returns the documents of a page. Those to store are siblings.
func (r *reader) documents(changes []release.DocumentChange) []model.EmbeddingsChange {
	var stored []*release.Tool
	for _, c := range changes {
		if c.Reason == "" {
			stored = append(stored, r.Tool(c.Slug))
		}
	}
	tools := r.Tools(stored)
	return mapSlice(changes, func(c release.DocumentChange) model.EmbeddingsChange {
		if c.Reason != "" {
			return &model.EmbeddingsDeletion{Slug: c.Slug, Deleted: true, Reason: model.EmbeddingsDeletionReason(c.Reason)}
		}
		document := tools[0].Embeddings()
		tools = tools[1:]
		return document
	})
}

const startOver = "Read the whole set again without sync."

// checkToken parses a token, which must be of the same category and of a release of
// this catalog.
func (r *reader) checkToken(ctx context.Context, text, category string) (release.SyncToken, error) {
	token, ok := release.ParseSyncToken(text)
	switch {
	case !ok:
		return token, problem.New(problem.BadInput,
			"sync must be the token of an earlier response, complete and unchanged (got %q). "+
				"If you have none, read the whole set without sync.", params.Truncate(text))
	case token.Category != category:
		return token, problem.New(problem.BadInput,
			"sync was issued for %s (got %s). Send the same category again, or read the whole set without sync.",
			describeCategory(token.Category), describeCategory(category))
	}
	if r.Info == nil {
		return token, problem.New(problem.Gone, "sync is from a release that this catalog does not have. %s", startOver)
	}
	if token.Release > r.Number() {
		if r.Pinned {
			return token, problem.New(problem.BadInput,
				"sync is from release %d, which is newer than release %d. "+
					"Read the newest release instead.", token.Release, r.Number())
		}
		if err := r.checkNewer(ctx, token); err != nil {
			return token, err
		}
		return token, problem.New(problem.Gone, "sync is from release %d, which this catalog does not have. %s",
			token.Release, startOver)
	}
	if info := r.Numbered(token.Release); info == nil || info.ImportedAt.UnixMicro() != token.PublishedAt {
		return token, problem.New(problem.Gone, "sync is from release %d of %s, which this catalog does not have. %s",
			token.Release, time.UnixMicro(token.PublishedAt).UTC().Format(time.DateTime), startOver)
	}
	return token, nil
}

// checkNewer returns an error for a token of a release that another server has
// published and this one has not loaded yet.
func (r *reader) checkNewer(ctx context.Context, token release.SyncToken) error {
	newest, err := store.NewestRelease(ctx, r.database().Release)
	if err == nil && newest != nil && newest.ID >= token.Release {
		return problem.New(problem.Unavailable, "Release %d is being loaded. Try again in a few seconds.",
			token.Release)
	}
	return err
}

func describeCategory(slug string) string {
	if slug == "" {
		return "all categories"
	}
	return "category=" + params.Truncate(slug)
}
