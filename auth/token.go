package auth

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/downloadtoken"
	"palmares/ent/savedquery"
	"palmares/internal/core/lookup"
	"palmares/internal/core/problem"
)

// Tokens are for programs that can send neither a key nor a header, such as
// spreadsheets. The token of a saved query gives access to that query, a download token
// to files, downloads of lists and public saved queries, and neither to anything else.

const (
	queryTokenPrefix    = "qt_"
	downloadTokenPrefix = "dt_"

	// TokenParameter is the parameter of a URL that has the token.
	TokenParameter = "token"
	// TokenKey takes the place of a key in callers that were identified by a token.
	TokenKey = "token"
	// MaxDownloadTokens is how many download tokens an account can have.
	MaxDownloadTokens = 10
)

var tokenPattern = regexp.MustCompile("^(" + queryTokenPrefix + "|" + downloadTokenPrefix + ")[A-Z2-7]{26}$")

var (
	errTokenElsewhere = problem.New(problem.Unauthenticated,
		"A download token gives access only to files, downloads of lists as CSV or NDJSON, and public saved queries. Send an API key for other requests.")
	errTokenUnknown = problem.New(problem.Unauthenticated,
		"This download token does not exist or was revoked. Create a new one in your account.")
)

// tokenOwner returns the owner of the token of a request, if it gives access to what
// is requested, or an anonymous caller.
func (k *Keyring) tokenOwner(r *http.Request) (Caller, error) {
	anonymous := Caller{Plan: Anonymous}
	token := TokenOf(r)
	if token == "" {
		return anonymous, nil
	}
	query, forDownloads := k.rules.SavedQuery(r), strings.HasPrefix(token, downloadTokenPrefix)
	switch {
	case query == "" && !forDownloads: // not for this path
		return anonymous, nil
	case query == "" && !k.rules.IsDownload(r):
		return anonymous, errTokenElsewhere
	}
	var found *cachedKey
	err := lookup.ErrNotFound
	if tokenPattern.MatchString(token) { // others need no lookup
		found, err = k.keys.GetFresh(r.Context(), tokenID(token))
	}
	switch {
	case errors.Is(err, lookup.ErrNotFound) && forDownloads:
		return anonymous, errTokenUnknown
	case errors.Is(err, lookup.ErrNotFound):
		return anonymous, nil
	case err != nil:
		k.log.ErrorContext(r.Context(), "token lookup failed", "cause", err, "request_id", problem.RequestID(r.Context()))
		return anonymous, problem.New(problem.Unavailable, "Tokens cannot be verified at the moment. Try again in a minute.")
	case forDownloads:
		k.recordUse(tokenID(token), found)
		owner := found.caller
		owner.Downloads = true
		return owner, nil
	case !slices.Contains(found.queries, query):
		return anonymous, nil
	}
	return found.caller, nil
}

// TokenOf returns the token of a request, or "".
func TokenOf(r *http.Request) string {
	for query := r.URL.RawQuery; query != ""; { // without parsing all of it
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if token, found := strings.CutPrefix(pair, TokenParameter+"="); found {
			return token // valid tokens need no escaping
		}
	}
	return ""
}

// tokenID returns the id of a token among those of keys.
func tokenID(token string) string { return token[:len(queryTokenPrefix)] + hashToken(token) }

func (k *Keyring) queryQueryToken(ctx context.Context, hash string) (*cachedKey, error) {
	row, err := k.store.Keys.SavedQuery.Query().Where(savedquery.TokenHash(hash)).WithAccount().Only(ctx)
	if err != nil {
		return nil, notFound(err)
	}
	found, err := newCachedKey(TokenKey, nil, row.Edges.Account)
	if err == nil && row.Edges.Account.Handle != nil {
		found.queries = []string{*row.Edges.Account.Handle + "/" + row.Name, row.Hash}
	}
	return found, err
}

func (k *Keyring) queryDownloadToken(ctx context.Context, hash string) (*cachedKey, error) {
	row, err := k.store.Keys.DownloadToken.Query().Where(downloadtoken.TokenHash(hash)).WithAccount().Only(ctx)
	if err != nil {
		return nil, notFound(err)
	}
	return newCachedKey(TokenKey, nil, row.Edges.Account)
}

// NewQueryToken returns a token of a saved query, and its hash, which is all that is
// stored of it.
func NewQueryToken() (token, hash string) {
	token = queryTokenPrefix + rand.Text()
	return token, hashToken(token)
}

// DownloadTokens returns the download tokens of an account, oldest first.
func (a *Accounts) DownloadTokens(ctx context.Context, owner *ent.Account) ([]*ent.DownloadToken, error) {
	return a.store.Read.DownloadToken.Query().Where(downloadtoken.AccountID(owner.ID)).Order(downloadtoken.ByID()).All(ctx)
}

// CreateDownloadToken creates a download token and returns it. Only its hash is stored,
// so it cannot be shown again.
func (a *Accounts) CreateDownloadToken(ctx context.Context, owner *ent.Account, name string) (string, error) {
	name, ok := validName(name)
	if !ok {
		return "", problem.New(problem.BadInput, "The name of a token must be a single line of at most %d characters.", MaxKeyName)
	}
	token := downloadTokenPrefix + rand.Text()
	// The account's row is locked, so that concurrent calls cannot exceed the limit.
	return token, a.store.WithRowLock(ctx, account.Table, owner.ID, func(tx *ent.Tx) error {
		n, err := tx.DownloadToken.Query().Where(downloadtoken.AccountID(owner.ID)).Count(ctx)
		if err != nil {
			return err
		}
		if n >= MaxDownloadTokens {
			return problem.New(problem.BadInput,
				"An account can have %d download tokens, and all of them are in use. Revoke one first.", MaxDownloadTokens)
		}
		return tx.DownloadToken.Create().SetAccountID(owner.ID).SetName(name).SetTokenHash(hashToken(token)).Exec(ctx)
	})
}

// RevokeDownloadToken revokes a download token of an account.
func (a *Accounts) RevokeDownloadToken(ctx context.Context, owner *ent.Account, id int) error {
	n, err := a.store.Write.DownloadToken.Delete().Where(downloadtoken.ID(id), downloadtoken.AccountID(owner.ID)).Exec(ctx)
	if err == nil && n == 0 {
		return problem.New(problem.NotFound, "This token does not exist or was already revoked.")
	}
	return err
}
