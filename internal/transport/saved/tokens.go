package saved

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"palmares/auth"
	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/downloadtoken"
	"palmares/ent/savedquery"
	"palmares/internal/core/problem"
	"palmares/internal/transport/files"
	"palmares/rest"
)

// Tokens are for programs that can send neither a key nor a header, such as
// spreadsheets. The token of a saved query gives access to that query, a download token
// to files and downloads of lists, and neither to anything else.

const (
	queryTokenPrefix    = "qt_"
	downloadTokenPrefix = "dt_"

	// TokenKey takes the place of a key in callers that were identified by a token.
	TokenKey = "token"
	// MaxDownloadTokens is how many download tokens an account can have.
	MaxDownloadTokens = 10
	// MaxTokenName is the maximum length of a download token's name, in characters.
	MaxTokenName = auth.MaxKeyName

	lastUsedEvery = time.Minute
)

var tokenPattern = regexp.MustCompile("^(" + queryTokenPrefix + "|" + downloadTokenPrefix + ")[A-Z2-7]{26}$")

var (
	errTokenElsewhere = problem.New(problem.Unauthenticated,
		"A download token gives access only to files, and to downloads of lists as CSV or NDJSON. Send an API key for other requests.")
	errTokenUnknown = problem.New(problem.Unauthenticated,
		"This download token does not exist or was revoked. Create a new one in your account.")
)

// tokenOwner is the account of a token, and what the token gives access to: the
// addresses of a query, or downloads.
type tokenOwner struct {
	caller           auth.Caller
	named, permanent string
	downloads        bool
}

func (o tokenOwner) mayRead(r *http.Request) bool {
	if o.downloads {
		return isDownload(r)
	}
	address, _, _ := splitPath(r.URL.Path)
	return address == o.named || address == o.permanent
}

// isDownload reports whether download tokens give access to a request.
func isDownload(r *http.Request) bool { return rest.IsDownload(r) || files.RequiresKey(r.URL.Path) }

// IdentifyToken is middleware that makes the owner of a valid token the caller of a
// request without a key.
func (s *Queries) IdentifyToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := tokenOf(r)
		inSaved := strings.HasPrefix(r.URL.Path, Path)
		forDownloads := strings.HasPrefix(token, downloadTokenPrefix)
		switch {
		case token == "" || auth.CallerFrom(r.Context()).Key != "" || inSaved == forDownloads: // not for this path
		case forDownloads && !isDownload(r):
			problem.Refuse(w, r, errTokenElsewhere)
			return
		default:
			found, err := s.findToken(r.Context(), token)
			unknown := err != nil && problem.Of(err).Code == problem.NotFound
			switch {
			case err != nil && !unknown:
				s.Log.ErrorContext(r.Context(), "token lookup failed", "cause", problem.Of(err).Cause,
					"request_id", problem.RequestID(r.Context()))
				problem.Refuse(w, r, err)
				return
			case unknown && forDownloads:
				problem.Refuse(w, r, errTokenUnknown)
				return
			case err == nil && found.mayRead(r):
				w.Header()["Cdn-Cache-Control"] = []string{"private, no-store"} // the response is only for this caller
				r = r.WithContext(auth.WithCaller(r.Context(), found.caller))
			}
		}
		next.ServeHTTP(w, r)
	})
}

// tokenOf returns the token of a request, or "".
func tokenOf(r *http.Request) string {
	for query := r.URL.RawQuery; query != ""; { // without parsing all of it
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if token, found := strings.CutPrefix(pair, tokenName+"="); found {
			return token // valid tokens need no escaping
		}
	}
	return ""
}

// findToken returns the owner of a token.
func (s *Queries) findToken(ctx context.Context, token string) (tokenOwner, error) {
	if !tokenPattern.MatchString(token) { // needs no lookup
		return tokenOwner{}, errNotFound
	}
	found, err := s.tokens.GetFresh(ctx, token[:len(queryTokenPrefix)]+tokenHash(token))
	return found, lookupError(err)
}

// readToken reads the owner of a token, given its prefix and its hash.
func (s *Queries) readToken(ctx context.Context, id string, _ tokenOwner) (owner tokenOwner, weight int, err error) {
	if hash, isDownload := strings.CutPrefix(id, downloadTokenPrefix); isDownload {
		owner, err = s.readDownloadToken(ctx, hash)
	} else {
		owner, err = s.readQueryToken(ctx, strings.TrimPrefix(id, queryTokenPrefix))
	}
	return owner, requestSize, err
}

func (s *Queries) readQueryToken(ctx context.Context, hash string) (tokenOwner, error) {
	row, err := s.Store.Keys.SavedQuery.Query().Where(savedquery.TokenHash(hash)).WithAccount().Only(ctx)
	if err != nil || row.Edges.Account == nil || row.Edges.Account.Handle == nil {
		return tokenOwner{}, notFound(err)
	}
	owner := row.Edges.Account
	return tokenOwner{
		caller: auth.CallerOf(owner, TokenKey),
		named:  namedAddress(*owner.Handle, row.Name), permanent: hashAddress(row.Hash),
	}, nil
}

func (s *Queries) readDownloadToken(ctx context.Context, hash string) (tokenOwner, error) {
	row, err := s.Store.Keys.DownloadToken.Query().Where(downloadtoken.TokenHash(hash)).WithAccount().Only(ctx)
	if err != nil || row.Edges.Account == nil {
		return tokenOwner{}, notFound(err)
	}
	if row.LastUsedAt == nil || time.Since(*row.LastUsedAt).Abs() >= lastUsedEvery {
		go s.recordUse(context.WithoutCancel(ctx), row.ID) // an import may block it for a while
	}
	return tokenOwner{caller: auth.CallerOf(row.Edges.Account, TokenKey), downloads: true}, nil
}

// recordUseTimeout limits how long recording a use waits for the database.
const recordUseTimeout = 10 * time.Second

// recordUse stores that a download token is in use. If it fails, a later request tries
// again.
func (s *Queries) recordUse(ctx context.Context, id int) {
	ctx, cancel := context.WithTimeout(ctx, recordUseTimeout)
	defer cancel()
	err := s.Store.Write.DownloadToken.Update().Where(downloadtoken.ID(id)).SetLastUsedAt(time.Now().UTC()).Exec(ctx)
	if err != nil {
		s.Log.Warn("saving the use of a download token failed", "cause", err)
	}
}

// SetToken creates a new token for a saved query, which replaces any previous one,
// and returns it. Only its hash is stored, so it cannot be shown again.
func (s *Queries) SetToken(ctx context.Context, owner *ent.Account, name string) (string, error) {
	token := queryTokenPrefix + rand.Text()
	hash := tokenHash(token)
	return token, s.setToken(ctx, owner, name, &hash)
}

// RevokeToken removes the token of a saved query.
func (s *Queries) RevokeToken(ctx context.Context, owner *ent.Account, name string) error {
	return s.setToken(ctx, owner, name, nil)
}

func (s *Queries) setToken(ctx context.Context, owner *ent.Account, name string, hash *string) error {
	update := s.Store.Write.SavedQuery.Update().
		Where(savedquery.AccountID(owner.ID), savedquery.Name(name)).SetNillableTokenHash(hash)
	if hash == nil {
		update.ClearTokenHash()
	}
	n, err := update.Save(ctx)
	return s.changed(owner, name, n, err)
}

func tokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// DownloadTokens returns the download tokens of an account, oldest first.
func (s *Queries) DownloadTokens(ctx context.Context, owner *ent.Account) ([]*ent.DownloadToken, error) {
	return s.Store.Read.DownloadToken.Query().Where(downloadtoken.AccountID(owner.ID)).Order(downloadtoken.ByID()).All(ctx)
}

// CreateDownloadToken creates a download token and returns it. Only its hash is stored,
// so it cannot be shown again.
func (s *Queries) CreateDownloadToken(ctx context.Context, owner *ent.Account, name string) (string, error) {
	name = strings.TrimSpace(name)
	if !utf8.ValidString(name) || utf8.RuneCountInString(name) > MaxTokenName ||
		strings.ContainsFunc(name, unicode.IsControl) {
		return "", problem.New(problem.BadInput,
			"The name of a token must be a single line of at most %d characters.", MaxTokenName)
	}
	token := downloadTokenPrefix + rand.Text()
	// The account's row is locked, so that concurrent calls cannot exceed the limit.
	return token, s.Store.WithRowLock(ctx, account.Table, owner.ID, func(tx *ent.Tx) error {
		n, err := tx.DownloadToken.Query().Where(downloadtoken.AccountID(owner.ID)).Count(ctx)
		if err != nil {
			return err
		}
		if n >= MaxDownloadTokens {
			return problem.New(problem.BadInput,
				"An account can have %d download tokens, and all of them are in use. Revoke one first.", MaxDownloadTokens)
		}
		return tx.DownloadToken.Create().SetAccountID(owner.ID).SetName(name).SetTokenHash(tokenHash(token)).Exec(ctx)
	})
}

// RevokeDownloadToken revokes a download token of an account.
func (s *Queries) RevokeDownloadToken(ctx context.Context, owner *ent.Account, id int) error {
	n, err := s.Store.Write.DownloadToken.Delete().Where(downloadtoken.ID(id), downloadtoken.AccountID(owner.ID)).Exec(ctx)
	s.forget(owner)
	if err == nil && n == 0 {
		return problem.New(problem.NotFound, "This token does not exist or was already revoked.")
	}
	return err
}
