package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/base64"
	"errors"
	"time"

	"palmares/ent"
	"palmares/internal/core/problem"
	"palmares/internal/core/store"
)

// A grant lets an application call the API for an account (OAuth 2.1). It begins with a
// code, which the application exchanges for an access token and a refresh token. Each
// refresh replaces both. Revoking a grant deletes it.
//
// The code and the refresh tokens of a grant share a secret. Whoever presents it with
// anything that is no longer current uses a copy, and the grant is revoked: without the
// shared secret, anyone who knows the public part of a token could revoke it.

const (
	accessPrefix  = "oat_"
	refreshPrefix = "ort_"
	codePrefix    = "oac_"

	codeLifetime = time.Minute
	// AccessLifetime is how long an access token works, and RefreshLifetime how long an
	// application stays connected that does not refresh it.
	AccessLifetime  = time.Hour
	RefreshLifetime = 60 * 24 * time.Hour

	// maxGrants is how many applications an account can connect. Another one replaces the
	// one that was not used for the longest time.
	maxGrants = 50
)

// Errors of exchanging codes and tokens.
var (
	ErrInvalidGrant = problem.New(problem.BadInput, "The code or refresh token is invalid, expired or already used. Start the authorization again.")
	ErrOtherTarget  = problem.New(problem.BadInput, "The resource is not the one that the user authorized.")
)

// Grant is an application that an account has connected.
type Grant struct {
	ID                               string
	ClientID, ClientName, ClientHost string
	Verified                         bool // ClientHost published the application's name
	Resource, RedirectURI            string
	Challenge                        string // PKCE with S256
	PrivateQueries                   bool   // it may read the private saved queries of the account
	CreatedAt, LastUsedAt            time.Time

	account        int
	codeHash       string
	codeExpires    int64
	accessID       string // "" until the code is exchanged
	accessHash     string
	accessExpires  int64
	refreshHash    string
	refreshExpires int64
}

// ApplicationPrefix is the prefix of usage keys.
const ApplicationPrefix = "app_"

// UsageKey identifies the application in the usage of an account.
func (g Grant) UsageKey() string { return ApplicationPrefix + g.ID }

// Tokens are what an application gets. Only hashes of them are stored.
type Tokens struct {
	Access, Refresh string
	PrivateQueries  bool // what the grant allows, besides the catalog
}

const grantColumns = "id, account_id, client_id, client_name, client_host, verified, resource, redirect_uri, challenge, private_queries, code_hash, code_expires_at, " +
	"coalesce(access_id, ''), access_hash, access_expires_at, refresh_hash, refresh_expires_at, created_at, last_used_at"

// readGrants returns the grants that a condition matches.
func readGrants(ctx context.Context, db store.Querier, condition string, args ...any) (all []Grant, err error) {
	err = store.ScanRows(ctx, db, func(rows *sql.Rows) error {
		var g Grant
		var created, used int64
		err := rows.Scan(&g.ID, &g.account, &g.ClientID, &g.ClientName, &g.ClientHost, &g.Verified, &g.Resource, &g.RedirectURI, &g.Challenge, &g.PrivateQueries,
			&g.codeHash, &g.codeExpires, &g.accessID, &g.accessHash, &g.accessExpires, &g.refreshHash, &g.refreshExpires, &created, &used)
		g.CreatedAt = time.Unix(created, 0).UTC()
		if used > 0 {
			g.LastUsedAt = time.Unix(used, 0).UTC()
		}
		all = append(all, g)
		return err
	}, "SELECT "+grantColumns+" FROM oauth_grants WHERE "+condition, args...)
	return all, err
}

// readGrant returns nil if there is no such grant.
func readGrant(ctx context.Context, db store.Querier, condition string, args ...any) (*Grant, error) {
	found, err := readGrants(ctx, db, condition, args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// CreateGrant stores that an account authorizes an application, and returns the code for it.
func (a *Accounts) CreateGrant(ctx context.Context, acc *ent.Account, g Grant) (code string, err error) {
	id, secret, now := readText(rand.Reader, idLength), readText(rand.Reader, secretLength), a.now()
	return tokenText(codePrefix, id+secret), a.store.Update(ctx, func(tx *ent.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO oauth_grants (id, account_id, client_id, client_name, client_host, verified, resource, redirect_uri, challenge,
			private_queries, code_hash, code_expires_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
			id, acc.ID, g.ClientID, g.ClientName, g.ClientHost, g.Verified, g.Resource, g.RedirectURI, g.Challenge, g.PrivateQueries,
			hashToken(secret), now.Add(codeLifetime).Unix(), now.Unix())
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM oauth_grants WHERE account_id = $1 AND id NOT IN (SELECT id FROM oauth_grants WHERE account_id = $1
			ORDER BY CASE WHEN last_used_at > created_at THEN last_used_at ELSE created_at END DESC, id LIMIT $2)`, acc.ID, maxGrants)
		return err
	})
}

// CodeExchange is a request to exchange a code for tokens.
type CodeExchange struct {
	Code, ClientID, RedirectURI, Verifier string
	Resource                              string // "" for the one that the code is for
}

// ExchangeCode returns the first tokens of a grant. A code works once. If it is presented
// again, or by an application that cannot prove that it requested it, someone has copied
// it, and the grant ends.
func (a *Accounts) ExchangeCode(ctx context.Context, x CodeExchange) (Tokens, error) {
	body, ok := parseToken(codePrefix, idLength+secretLength, x.Code)
	if !ok {
		return Tokens{}, ErrInvalidGrant
	}
	id, secret := body[:idLength], body[idLength:]
	return a.replaceTokens(ctx, id, secret, x.Resource, func(g *Grant, now time.Time) (current, refused bool) {
		proof := sha256.Sum256([]byte(x.Verifier))
		proven := x.ClientID == g.ClientID && x.RedirectURI == g.RedirectURI && equal(base64.RawURLEncoding.EncodeToString(proof[:]), g.Challenge)
		return g.accessID == "" && proven, now.Unix() >= g.codeExpires
	})
}

// RefreshTokens replaces the tokens of a grant. A refresh token works once: if it is
// presented again, someone has copied it, and the grant ends.
func (a *Accounts) RefreshTokens(ctx context.Context, refresh, clientID, resource string) (Tokens, error) {
	body, ok := parseToken(refreshPrefix, idLength+2*secretLength, refresh)
	if !ok {
		return Tokens{}, ErrInvalidGrant
	}
	id, shared, secret := body[:idLength], body[idLength:idLength+secretLength], body[idLength+secretLength:]
	return a.replaceTokens(ctx, id, shared, resource, func(g *Grant, now time.Time) (current, refused bool) {
		return g.accessID != "" && equal(hashToken(secret), g.refreshHash), clientID != g.ClientID || now.Unix() >= g.refreshExpires
	})
}

// replaceTokens gives a grant new tokens. If check reports that what was presented is not
// current, it ends the grant. Of concurrent calls, at most one succeeds, and the others end
// the grant.
func (a *Accounts) replaceTokens(
	ctx context.Context, id, shared, resource string, check func(*Grant, time.Time) (current, refused bool),
) (tokens Tokens, err error) {
	var refusal error // the transaction commits what it deleted
	err = a.store.Update(ctx, func(tx *ent.Tx) error {
		g, err := readGrant(ctx, tx, "id = $1", id)
		if err != nil {
			return err
		}
		if g == nil || !equal(hashToken(shared), g.codeHash) {
			refusal = ErrInvalidGrant
			return nil
		}
		now := a.now()
		current, refused := check(g, now)
		switch {
		case current && refused:
			refusal = ErrInvalidGrant
			return nil
		case current && resource != "" && resource != g.Resource:
			refusal = ErrOtherTarget
			return nil
		case current:
			access, accessID := readText(rand.Reader, secretLength), readText(rand.Reader, idLength)
			refresh := readText(rand.Reader, secretLength)
			updated, err := tx.ExecContext(ctx, `UPDATE oauth_grants SET access_id = $1, access_hash = $2, access_expires_at = $3, refresh_hash = $4, refresh_expires_at = $5
				WHERE id = $6 AND refresh_hash = $7`, accessID, hashToken(access), now.Add(AccessLifetime).Unix(),
				hashToken(refresh), now.Add(RefreshLifetime).Unix(), id, g.refreshHash)
			if err != nil {
				return err
			}
			if n, err := updated.RowsAffected(); err != nil || n == 1 {
				tokens = Tokens{tokenText(accessPrefix, accessID+access), tokenText(refreshPrefix, id+shared+refresh), g.PrivateQueries}
				return err
			}
		}
		refusal = ErrInvalidGrant
		_, err = tx.ExecContext(ctx, "DELETE FROM oauth_grants WHERE id = $1", id)
		return err
	})
	if err := errors.Join(err, refusal); err != nil {
		return Tokens{}, err
	}
	return tokens, nil
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// RevokeTokens ends the grant that an access token or refresh token of an application
// belongs to. Unknown tokens are no error. It returns the account, 0 for none.
func (a *Accounts) RevokeTokens(ctx context.Context, token, clientID string) (account int, err error) {
	var g *Grant
	if body, ok := parseToken(accessPrefix, idLength+secretLength, token); ok {
		g, err = readGrant(ctx, a.store.Write, "access_id = $1 AND access_hash = $2", body[:idLength], hashToken(body[idLength:]))
	} else if body, ok := parseToken(refreshPrefix, idLength+2*secretLength, token); ok {
		// Also one that was replaced: its owner wants to disconnect.
		g, err = readGrant(ctx, a.store.Write, "id = $1 AND code_hash = $2", body[:idLength], hashToken(body[idLength:idLength+secretLength]))
	}
	if err != nil || g == nil || g.ClientID != clientID {
		return 0, err
	}
	return g.account, deleteGrants(ctx, a.store, "id = $1", g.ID)
}

func deleteGrants(ctx context.Context, s *store.Store, condition string, args ...any) error {
	return s.Update(ctx, func(tx *ent.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM oauth_grants WHERE "+condition, args...)
		return err
	})
}

// Grants returns the applications that an account has connected, newest first.
func (a *Accounts) Grants(ctx context.Context, acc *ent.Account) ([]Grant, error) {
	return readGrants(ctx, a.store.Read, "account_id = $1 AND access_id IS NOT NULL AND refresh_expires_at > $2 ORDER BY created_at DESC, id", acc.ID, a.now().Unix())
}

// RevokeGrant disconnects an application from an account.
func (a *Accounts) RevokeGrant(ctx context.Context, acc *ent.Account, id string) error {
	return deleteGrants(ctx, a.store, "id = $1 AND account_id = $2", id, acc.ID)
}

// IsConnected reports whether any account has connected an application.
func (a *Accounts) IsConnected(ctx context.Context, clientID string) (bool, error) {
	g, err := readGrant(ctx, a.store.Read, "client_id = $1 AND access_id IS NOT NULL LIMIT 1", clientID)
	return g != nil, err
}
