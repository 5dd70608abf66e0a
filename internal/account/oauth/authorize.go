package oauth

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/problem"
)

// Request is a valid request of an application for access to an account.
type Request struct {
	Client   *Client
	Resource string
	Local    bool // the application runs on the user's machine
	// PrivateQueries reports whether the application also wants to read the private saved
	// queries of the account.
	PrivateQueries bool

	redirect  *url.URL
	uri       string // redirect as it was sent
	state     *string
	challenge string
}

// MaxQuery is how long the query of a request can be, in bytes. It becomes part of a link
// in an email.
const MaxQuery = 3_000

var (
	errQuery      = problem.New(problem.BadInput, "The application's request is longer than %d bytes. Report this to its developers.", MaxQuery)
	errTwice      = problem.New(problem.BadInput, "The application's request contains client_id or redirect_uri twice. Report this to its developers.")
	errReturn     = problem.New(problem.BadInput, "The redirect_uri in the application's request is not registered. Remove the application and add it again, or report this to its developers.")
	challengeS256 = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
)

// Rejection is a request that is refused by sending the browser back to the application.
type Rejection struct{ Location, reason string }

func (r *Rejection) Error() string { return r.reason }

// Parse reads the request of an application to a signed-in account. Errors about a client
// that is not verified are for a page: anyone can register one, and with it a link of this
// site that leads anywhere. It returns a Rejection only if the client and
// its redirect URI are known to belong together: the browser is never sent anywhere else.
func (s *Server) Parse(r *http.Request, account int) (*Request, error) {
	if len(r.URL.RawQuery) > MaxQuery {
		return nil, errQuery
	}
	query := r.URL.Query()
	if len(query["client_id"]) > 1 || len(query["redirect_uri"]) > 1 {
		return nil, errTwice
	}
	client, err := s.client(r.Context(), account, query.Get("client_id"))
	if err != nil {
		return nil, err
	}
	request := &Request{uri: query.Get("redirect_uri"), challenge: query.Get("code_challenge"), Resource: s.resource(query.Get("resource"))}
	var allowed bool
	if request.redirect, allowed = client.allows(request.uri); !allowed {
		return nil, errReturn
	}
	request.Local = isLoopback(request.redirect) || request.redirect.Scheme != "https"
	named := *client
	if !named.Verified {
		named.Host = request.redirect.Host
		if request.redirect.Scheme != "https" && !isLoopback(request.redirect) {
			named.Host = request.redirect.Scheme + "://" + request.redirect.Host
		}
	}
	named.Name = cmp.Or(named.Name, named.Host)
	request.Client = &named
	if states := query["state"]; len(states) > 0 {
		request.state = &states[0]
	}
	reject := func(code, reason string) (*Request, error) {
		if !client.Verified {
			return nil, problem.New(problem.BadInput, "The application's request is not valid: %s Report this to its developers.", reason)
		}
		return nil, &Rejection{s.location(request, url.Values{"error": {code}, "error_description": {reason}}), reason}
	}
	for _, name := range []string{"response_type", "state", "code_challenge", "code_challenge_method", "scope", "response_mode"} {
		if len(query[name]) > 1 {
			return reject("invalid_request", name+" must not be sent twice.")
		}
	}
	switch {
	case query.Get("response_type") != "code":
		return reject("unsupported_response_type", "response_type must be code.")
	case query.Has("response_mode") && query.Get("response_mode") != "query":
		return reject("invalid_request", "response_mode must be query.")
	case !challengeS256.MatchString(request.challenge) || query.Get("code_challenge_method") != "S256":
		return reject("invalid_request", "PKCE is required: send code_challenge, and S256 as code_challenge_method.")
	case len(query["resource"]) != 1 || request.Resource == "":
		return reject("invalid_target", "resource must be "+s.PublicURL+s.MCPPath+" or "+s.PublicURL+".")
	}
	request.PrivateQueries = request.Resource == s.PublicURL && slices.Contains(strings.Fields(query.Get("scope")), queriesScope)
	return request, nil
}

// location returns the address that a response is sent to. The issuer is part of it, so
// that clients notice a response from another server (RFC 9207).
func (s *Server) location(request *Request, response url.Values) string {
	response.Set("iss", s.PublicURL)
	if request.state != nil {
		response.Set("state", *request.state)
	}
	separator := "?"
	if strings.Contains(request.uri, "?") {
		separator = "&"
	}
	return request.uri + separator + response.Encode()
}

// FormTargets returns the sources that the Content-Security-Policy of the page must allow
// its form to lead to. Applications may redirect further, so it allows all hosts.
func (r *Request) FormTargets() string {
	if r.redirect.Scheme == "https" {
		return "https:"
	}
	return "https: " + r.redirect.Scheme + ":"
}

// Allow connects the application to an account and returns where to send the browser.
func (s *Server) Allow(ctx context.Context, request *Request, acc *ent.Account) (location string, err error) {
	code, err := s.Accounts.CreateGrant(ctx, acc, auth.Grant{
		ClientID: request.Client.ID, ClientName: request.Client.Name, ClientHost: request.Client.Host, Verified: request.Client.Verified,
		Resource: request.Resource, RedirectURI: request.uri, Challenge: request.challenge, PrivateQueries: request.PrivateQueries,
	})
	return s.location(request, url.Values{"code": {code}}), err
}

// Deny returns where to send the browser of a user who does not connect the application.
func (s *Server) Deny(request *Request) (location string) {
	return s.location(request, url.Values{"error": {"access_denied"}, "error_description": {"The user did not allow access."}})
}
