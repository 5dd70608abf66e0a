// Package auth identifies callers: an API key leads to an account, and the
// account to a plan. It also signs people in by email.
package auth

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"palmares/ent"
	"palmares/internal/core/problem"
	"palmares/internal/core/quota"
)

// Caller is the sender of a request.
type Caller struct {
	Plan    Plan
	Account int    // 0 for an anonymous caller
	Key     string // public id of the key that was sent
	Browser bool   // the key belongs to a signed-in browser, not to a program
	// Application is the UsageKey of the grant whose access token was sent, or "".
	Application string
	// PrivateQueries reports whether that application may read the account's private
	// saved queries.
	PrivateQueries bool
	// Downloads reports whether a download token was sent, which gives access to nothing
	// private.
	Downloads bool
	Subject   quota.Subject // what its requests are counted under
}

// CallerOf returns the caller that an account is when it uses a key.
func CallerOf(acc *ent.Account, key string) Caller {
	return Caller{Plan: Plan(acc.Plan), Account: acc.ID, Key: key, Subject: Subject(acc)}
}

// MayReadEmbeddings reports whether the caller's plan includes embeddings.
func (c Caller) MayReadEmbeddings() bool { return c.Plan.Terms().Embeddings }

// CheckEmbeddings returns why the caller in a context may not read embeddings; nil if it
// may.
func CheckEmbeddings(ctx context.Context) *problem.Problem {
	if CallerFrom(ctx).MayReadEmbeddings() {
		return nil
	}
	return problem.New(problem.Unauthenticated,
		"Embeddings require an account. Send an API key as a bearer token in the Authorization header, or sign in with OAuth.")
}

// OwnsQueries reports whether the caller may read the private saved queries of an account.
func (c Caller) OwnsQueries(account int) bool {
	return c.Account != 0 && c.Account == account && !c.Downloads && (c.Application == "" || c.PrivateQueries)
}

type callerKey struct{}

// WithCaller returns a context that carries the caller.
func WithCaller(ctx context.Context, caller Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// CallerFrom returns the caller of a context, anonymous if it has none.
func CallerFrom(ctx context.Context) Caller {
	if caller, ok := ctx.Value(callerKey{}).(Caller); ok {
		return caller
	}
	return Caller{Plan: Anonymous}
}

// keyOf reads the key of a request; sent is false if there is none. A malformed key
// is an error, so that its sender is never treated as anonymous. With allowBasic, the
// key may also be the user name of HTTP Basic.
func keyOf(r *http.Request, allowBasic bool) (key Key, sent bool, err error) {
	if keyInURL(r.URL) {
		return Key{}, false, problem.New(problem.Unauthenticated,
			"Send the API key or token in the Authorization header, never in the URL. Revoke it: URLs end up in logs.")
	}
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return Key{}, false, nil
	}
	if len(values) > 1 {
		return Key{}, true, problem.New(problem.Unauthenticated, "Send the Authorization header only once.")
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		if key, ok := parseAccessToken(token); ok {
			return key, true, nil
		}
	case allowBasic && strings.EqualFold(scheme, "Basic"):
		token, _, _ = r.BasicAuth() // "" if it is malformed
	case allowBasic:
		return Key{}, true, problem.New(problem.Unauthenticated,
			"The Authorization header must be of the form Bearer <API_KEY>, or HTTP Basic with the API key as the user name.")
	default:
		return Key{}, true, problem.New(problem.Unauthenticated,
			"The Authorization header must be of the form Bearer <API_KEY>.")
	}
	key, ok := ParseKey(token)
	if !ok {
		err = problem.New(problem.Unauthenticated, "This API key is malformed. Check that you copied all of it.")
	}
	return key, true, err
}

var keyPattern = regexp.MustCompile(`(pal|oat|ort)_[0-9A-Za-z]{40,}`) // mistyped keys and tokens too

func keyInURL(u *url.URL) bool {
	if !strings.Contains(u.Path, "_") && !strings.ContainsAny(u.RawQuery, "_%") {
		return false // fast path for almost every request
	}
	query, err := url.QueryUnescape(u.RawQuery)
	if err != nil {
		query = u.RawQuery
	}
	return keyPattern.MatchString(u.Path) || keyPattern.MatchString(query)
}
