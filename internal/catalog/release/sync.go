package release

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

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

const startOver = "Read the whole set again without sync."

// SyncedRelease returns the release of a token, which must be of the same category and of a
// release up to this one. It calls published for the newest release in the database, which
// may not be loaded yet; pinned is set if a newer release is not to be read.
func (r *Release) SyncedRelease(
	text, category string, pinned bool, published func() (newest int, err error),
) (int, error) {
	token, ok := ParseSyncToken(text)
	switch {
	case !ok:
		return 0, problem.New(problem.BadInput,
			"sync must be the token of an earlier response, complete and unchanged (got %q). "+
				"If you have none, read the whole set without sync.", params.Truncate(text))
	case token.Category != category:
		return 0, problem.New(problem.BadInput,
			"sync was issued for %s (got %s). Send the same category again, or read the whole set without sync.",
			describeCategory(token.Category), describeCategory(category))
	case r.Info == nil:
		return 0, problem.New(problem.Gone, "sync is from a release that this catalog does not have. %s", startOver)
	case token.Release > r.Number() && pinned:
		return 0, problem.New(problem.BadInput,
			"sync is from release %d, which is newer than release %d. "+
				"Read the newest release instead.", token.Release, r.Number())
	case token.Release > r.Number():
		newest, err := published()
		if err == nil && newest >= token.Release {
			err = problem.New(problem.Unavailable, "Release %d is being loaded. Try again in a few seconds.",
				token.Release)
		}
		return 0, cmp.Or[error](err, problem.New(problem.Gone, "sync is from release %d, which this catalog does not have. %s",
			token.Release, startOver))
	}
	if info := r.Numbered(token.Release); info == nil || info.ImportedAt.UnixMicro() != token.PublishedAt {
		return 0, problem.New(problem.Gone, "sync is from release %d of %s, which this catalog does not have. %s",
			token.Release, time.UnixMicro(token.PublishedAt).UTC().Format(time.DateTime), startOver)
	}
	if oldest := r.HistoryFrom(); token.Release < r.Number() && token.Release < oldest {
		return 0, problem.New(problem.Gone,
			"sync is from release %d, which is no longer available. "+
				"The oldest available release is %d. %s", token.Release, oldest, startOver)
	}
	if r.Partial() {
		return 0, ErrPartial
	}
	return token.Release, nil
}

func describeCategory(slug string) string {
	if slug == "" {
		return "all categories"
	}
	return "category=" + params.Truncate(slug)
}
