package auth

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"palmares/internal/core/problem"
)

// bearer reads the key that a request sends; false for a request without one.
// What is there but is no key is refused: it never falls back to anonymous.
func bearer(r *http.Request) (key Key, sent bool, err error) {
	if keyInAddress(r.URL) {
		return Key{}, false, problem.New(problem.Unauthenticated,
			"An API key belongs into the Authorization header, never into the address: revoke this one.")
	}
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return Key{}, false, nil
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	switch {
	case len(values) > 1:
		err = problem.New(problem.Unauthenticated, "Authorization is given twice.")
	case !strings.EqualFold(scheme, "Bearer"):
		err = problem.New(problem.Unauthenticated, "Authorization must be of the form Bearer <API_KEY>.")
	default:
		var ok bool
		if key, ok = ParseKey(token); !ok {
			err = problem.New(problem.Unauthenticated, "The API key is malformed: has it been cut or mistyped?")
		}
	}
	return key, true, err
}

// keyShaped is what looks like a key, a mistyped one too.
var keyShaped = regexp.MustCompile(`pal_[0-9A-Za-z]{40,}`)

// keyInAddress finds a key where logs, histories and referrers would keep it.
func keyInAddress(u *url.URL) bool {
	if !strings.Contains(u.Path, keyPrefix) && !strings.ContainsAny(u.RawQuery, "_%") {
		return false // almost every request
	}
	query, err := url.QueryUnescape(u.RawQuery)
	if err != nil {
		query = u.RawQuery
	}
	return keyShaped.MatchString(u.Path) || keyShaped.MatchString(query)
}
