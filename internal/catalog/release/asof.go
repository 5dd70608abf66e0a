package release

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	"palmares/ent"
	"palmares/internal/core/lang"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

// AsOf selects the release that an operation reads: the newest, the one with a
// number, or the newest as of a day.
type AsOf struct {
	Release int
	Date    string
}

// IsNewest reports whether the newest release is selected.
func (a AsOf) IsNewest() bool { return a == AsOf{} }

// These errors are shown on pages too, so they are translated.
const (
	badAsOf lang.Message = "as_of must be a release number (1 or higher) " +
		"or a date in the form YYYY-MM-DD (got %q)."
	noRelease       lang.Message = "No release has been published yet."
	noReleaseBefore lang.Message = "No release dated %s or earlier is available. " +
		"Available releases: %d (%s) to %d (%s)."
	releaseUnavailable lang.Message = "Release %d is not available. Available releases: %d (%s) to %d (%s)."
	releasePruned      lang.Message = "Release %s is no longer available."
)

// ParseAsOf reads a release number or a day.
func ParseAsOf(text string) (AsOf, error) {
	if number, ok := ParseNumber(text); ok {
		return AsOf{Release: number}, nil
	}
	if params.IsDay(text) {
		return AsOf{Date: text}, nil
	}
	return AsOf{}, problem.New(problem.BadInput, string(badAsOf), params.Truncate(text))
}

// String returns the release as ParseAsOf reads it.
func (a AsOf) String() string { return cmp.Or(a.Date, strconv.Itoa(a.Release)) }

// ReadableAsOf returns the release that asOf selects among those up to this one, if it can
// be read.
func (r *Release) ReadableAsOf(asOf AsOf) *ent.Release {
	readable := r.Readable()
	if asOf.Date != "" {
		return Dated(readable, asOf.Date)
	}
	if info := r.Numbered(asOf.Release); slices.Contains(readable, info) {
		return info
	}
	return nil
}

// resolve returns the newest release or the earlier one that asOf selects.
func (c *Catalog) resolve(newest *Release, asOf AsOf) (*Release, error) {
	if asOf.IsNewest() {
		return newest, nil
	}
	if newest.Info == nil {
		return nil, problem.New(problem.NotFound, string(noRelease))
	}
	switch info := newest.ReadableAsOf(asOf); {
	case info != nil && info.ID == newest.Number():
		return newest, nil
	case info != nil && newest.Partial():
		return nil, ErrPartial
	case info != nil:
		return c.Earlier(newest, info), nil
	}
	readable := newest.Readable()
	oldest := readable[len(readable)-1]
	available := []any{oldest.ID, lang.Date(oldest.FeedDate), newest.Number(), lang.Date(newest.Info.FeedDate)}
	if asOf.Date != "" {
		return nil, problem.New(problem.NotFound, string(noReleaseBefore),
			append([]any{lang.Date(asOf.Date)}, available...)...)
	}
	return nil, problem.New(problem.NotFound, string(releaseUnavailable), append([]any{asOf.Release}, available...)...)
}

// Release returns the release that asOf selects.
func (c *Catalog) Release(ctx context.Context, asOf AsOf) (*Release, error) {
	newest := c.Newest
	if !asOf.IsNewest() {
		newest = c.Complete
	}
	known, err := newest(ctx)
	if err != nil {
		return nil, err
	}
	return c.resolve(known, asOf)
}

// Read calls read with the selected release and the number of the newest one at that time,
// again if it turns out to need more than is in memory. What read has read from the
// database is only complete if the release still exists afterwards.
func (c *Catalog) Read(ctx context.Context, asOf AsOf, read func(r *Release, newest int) (queried bool, err error)) error {
	try := func(find func(context.Context) (*Release, error)) error {
		known, err := find(ctx)
		if err != nil {
			return err
		}
		selected, err := c.resolve(known, asOf)
		if err != nil {
			return err
		}
		queried, err := read(selected, known.Number())
		if !queried {
			return err
		}
		return cmp.Or(c.Verify(ctx, selected), err)
	}
	err := try(c.Newest)
	if errors.Is(err, ErrPartial) {
		err = try(c.Complete)
	}
	if errors.Is(err, store.ErrNoRelease) { // it was pruned, or a backup was restored
		err = try(c.reload)
	}
	if errors.Is(err, store.ErrNoRelease) { // pruned again, or rows of the release are missing
		c.log.ErrorContext(ctx, "operation failed twice",
			"code", problem.NotFound, "cause", err, "request_id", problem.RequestID(ctx))
		return problem.New(problem.NotFound, string(releasePruned), asOf)
	}
	return err
}
