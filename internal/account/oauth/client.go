package oauth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"palmares/internal/core/egress"
	"palmares/internal/core/problem"
	"palmares/internal/core/quota"
)

// Client is an application. All clients are public: they have no secret.
type Client struct {
	ID, Name string
	// Host published the metadata of a verified client. Anyone can register other clients
	// under any name, so only the host that they return to is known.
	Host         string
	Verified     bool
	RedirectURIs []string
}

const (
	registeredPrefix = "dcr_"
	// unusedLifetime is how long a registered client works that nobody has connected.
	unusedLifetime = 24 * time.Hour

	maxClientID  = 2_000
	maxRedirects = 20
	maxRedirect  = 1_000
	maxName      = 80

	maxDocument      = 64 << 10
	maxDocuments     = 1_000
	documentLifetime = time.Hour
	lastLifetime     = 7 * 24 * time.Hour // of a document that cannot be requested again
	failureLifetime  = time.Minute
	fetchTimeout     = 5 * time.Second
)

// Errors about clients. They are shown to users, who can only try again or report it
// to the developers of the application.
var (
	errClient   = problem.New(problem.BadInput, "The application is unknown: its client_id is neither registered here nor the URL of a metadata document.")
	errUnused   = problem.New(problem.BadInput, "The registration of this application has expired, because nobody connected it within a day. Add it again in the application.")
	errFetch    = problem.New(problem.BadInput, "The metadata document of this application could not be read. It must be a JSON document of at most 64 kB at a public https URL, without redirects.")
	errDocument = problem.New(problem.BadInput, "The metadata document of this application is not valid: it must contain its own URL as client_id, valid redirect_uris, and no client secret.")
	errFetches  = problem.New(problem.TooMany, "Too many metadata documents were requested. Try again in a minute.")
)

// client returns the client with an id that the request of a signed-in account names.
func (s *Server) client(ctx context.Context, account int, id string) (*Client, error) {
	switch {
	case len(id) > maxClientID:
		return nil, errClient
	case strings.HasPrefix(id, registeredPrefix):
		return s.registeredClient(ctx, id)
	case strings.HasPrefix(id, "https://") || strings.HasPrefix(id, "http://"):
		return s.publishedClient(ctx, account, id)
	}
	return nil, errClient
}

// registration is all that is known about a registered client. It is part of the client's
// id, so that registrations need no storage, however many there are.
type registration struct {
	At        int64    `json:"t"`
	Name      string   `json:"n"`
	Redirects []string `json:"r"`
}

func (s *Server) signRegistration(content registration) (id string, err error) {
	payload, err := json.Marshal(content)
	return registeredPrefix + base64.RawURLEncoding.EncodeToString(append(s.sign(payload), payload...)), err
}

const signatureLength = 16

func (s *Server) sign(payload []byte) []byte {
	mac := hmac.New(sha256.New, s.secret)
	mac.Write(payload)
	return mac.Sum(nil)[:signatureLength]
}

// registeredClient returns a registered client, unless its registration has expired.
func (s *Server) registeredClient(ctx context.Context, id string) (*Client, error) {
	signed, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimPrefix(id, registeredPrefix))
	if err != nil || len(signed) < signatureLength || !hmac.Equal(s.sign(signed[signatureLength:]), signed[:signatureLength]) {
		return nil, errClient
	}
	var content registration
	if err := json.Unmarshal(signed[signatureLength:], &content); err != nil {
		return nil, errClient
	}
	if age := s.now().Sub(time.Unix(content.At, 0)); age.Abs() > unusedLifetime {
		connected, err := s.Accounts.IsConnected(ctx, id)
		if err != nil {
			return nil, err
		}
		if !connected {
			return nil, errUnused
		}
	}
	return &Client{ID: id, Name: content.Name, RedirectURIs: content.Redirects}, nil
}

// clientMetadata is what applications send or publish about themselves (RFC 7591).
type clientMetadata struct {
	ClientID     string   `json:"client_id"`
	ClientName   string   `json:"client_name"`
	RedirectURIs []string `json:"redirect_uris"`
	GrantTypes   []string `json:"grant_types"`
	AuthMethod   string   `json:"token_endpoint_auth_method"`
	Secret       string   `json:"client_secret"`
}

// serveRegistration registers a client (RFC 7591).
func (s *Server) serveRegistration(w http.ResponseWriter, r *http.Request) {
	if !allowPost(w, r) {
		return
	}
	if !s.registrations.Take(s.address(r), 1) {
		writeError(w, http.StatusTooManyRequests, "temporarily_unavailable", "Too many applications were registered from your network. Try again in a minute.")
		return
	}
	var given clientMetadata
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxDocument))
	if err == nil {
		err = json.Unmarshal(body, &given)
	}
	name := cleanName(given.ClientName)
	switch {
	case err != nil:
		writeError(w, http.StatusBadRequest, "invalid_client_metadata", "The request must be a JSON object with redirect_uris.")
		return
	case !validRedirects(given.RedirectURIs):
		writeError(w, http.StatusBadRequest, "invalid_redirect_uri",
			"redirect_uris must be a list of https URLs, http URLs of this machine (localhost, 127.0.0.1 or [::1]), or URLs with the scheme cursor or vscode.")
		return
	case len(given.GrantTypes) > 0 && !slices.Contains(given.GrantTypes, "authorization_code"):
		writeError(w, http.StatusBadRequest, "invalid_client_metadata", "grant_types must include authorization_code.")
		return
	}
	issued := s.now().Unix()
	id, err := s.signRegistration(registration{issued, name, given.RedirectURIs})
	if err != nil || len(id) > maxClientID {
		writeError(w, http.StatusBadRequest, "invalid_client_metadata", "The redirect_uris are too long.")
		return
	}
	writeJSON(w, http.StatusCreated, map[string]any{
		"client_id": id, "client_id_issued_at": issued, "client_name": name, "redirect_uris": given.RedirectURIs, "scope": scope,
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"}, "token_endpoint_auth_method": "none",
	})
}

// cleanName returns a name in one short line, without characters that would disguise it.
func cleanName(name string) string {
	name = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.Is(unicode.C, r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, name)), " ")
	if runes := []rune(name); len(runes) > maxName {
		name = string(runes[:maxName-1]) + "…"
	}
	return name
}

// document is the client of a metadata document, or why there is none.
type document struct {
	client  *Client
	err     error
	fetched time.Time
}

// isASCII reports whether a host has only ASCII characters, so that it cannot look like
// another one. Names in other scripts have such a form, too, which starts with xn--.
func isASCII(host string) bool {
	return !strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII })
}

// Lookalikes returns the letters of the client's name that can look like others, with their
// code points: all but those of English and French.
func (c *Client) Lookalikes() string {
	var letters []string
	for _, r := range c.Name {
		base, _ := utf8.DecodeRuneInString(norm.NFD.String(string(r)))
		if letter := fmt.Sprintf("%c (%U)", r, r); unicode.IsLetter(r) && base > unicode.MaxASCII && !strings.ContainsRune("æœÆŒ", r) && !slices.Contains(letters, letter) {
			letters = append(letters, letter)
		}
	}
	return strings.Join(letters, ", ")
}

// publishedClient returns the client whose id is the URL of its metadata document. While too
// many are requested, it returns the last valid one.
func (s *Server) publishedClient(ctx context.Context, account int, id string) (*Client, error) {
	u, err := s.policy().CheckURL(id)
	if err != nil || u.String() != id || !isASCII(u.Host) || strings.Trim(u.Path, "/") == "" || slices.ContainsFunc(strings.Split(u.Path, "/"), func(part string) bool { return part == "." || part == ".." }) {
		return nil, errClient
	}
	known, isKnown := s.documents.GetIfPresent(id)
	switch {
	case isKnown && (known.err != nil || s.now().Sub(known.fetched) < documentLifetime):
		return known.client, known.err
	case s.accounts.Take(quota.Subject(account), 1) && s.hosts.Take(quota.Subject(maphash.String(s.seed, u.Host)), 1):
	case isKnown:
		return known.client, nil
	default:
		return nil, errFetches
	}
	fetched, _, _ := s.fetches.Do(id, func() (any, error) {
		client, err := s.fetch(context.WithoutCancel(ctx), id, u.Host)
		found := document{client, err, s.now()}
		s.documents.Set(id, found)
		return found, nil
	})
	found := fetched.(document)
	return found.client, found.err
}

func (s *Server) fetch(ctx context.Context, id, host string) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return nil, errClient
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "palmares-oauth")
	response, err := s.transport.RoundTrip(request) // unlike a Client, it follows no redirects
	if err != nil {
		s.Log.InfoContext(ctx, "reading a client metadata document failed", "host", host, "cause", err)
		return nil, errFetch
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	var content clientMetadata
	switch {
	case err != nil || response.StatusCode != http.StatusOK || len(body) > maxDocument:
		return nil, errFetch
	case json.Unmarshal(body, &content) != nil || content.ClientID != id || !validRedirects(content.RedirectURIs),
		content.Secret != "" || strings.HasPrefix(content.AuthMethod, "client_secret"):
		return nil, errDocument
	}
	return &Client{ID: id, Name: cleanName(content.ClientName), Host: host, Verified: true, RedirectURIs: content.RedirectURIs}, nil
}

// policy says where metadata documents may be.
func (s *Server) policy() egress.Policy { return egress.Policy{Loopback: s.Loopback} }

// newTransport returns a transport with the rules of webhooks.
func (s *Server) newTransport() http.RoundTripper {
	return &http.Transport{
		DialContext: egress.Dialer(s.policy, nil).DialContext, TLSHandshakeTimeout: fetchTimeout, ForceAttemptHTTP2: true,
		DisableCompression: true, // a small response could decompress to a huge one
		DisableKeepAlives:  true, MaxResponseHeaderBytes: 32 << 10,
	}
}

// privateSchemes are those of applications that register them with the system.
var privateSchemes = []string{"cursor", "vscode"}

// validRedirects reports whether all URIs are ones that a browser may be sent to.
func validRedirects(uris []string) bool {
	return len(uris) > 0 && len(uris) <= maxRedirects && !slices.ContainsFunc(uris, func(uri string) bool {
		_, valid := parseRedirect(uri)
		return !valid
	})
}

func parseRedirect(uri string) (*url.URL, bool) {
	u, err := url.Parse(uri)
	if err != nil || len(uri) > maxRedirect || u.Host == "" || !isASCII(u.Host) || u.User != nil || strings.Contains(uri, "#") ||
		strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"'<>\`+"`{}|^", r) }) {
		return nil, false
	}
	return u, u.Scheme == "https" && u.Hostname() != "" || isLoopback(u) || slices.Contains(privateSchemes, u.Scheme)
}

// isLoopback reports whether a redirect URI leads to a program on the user's machine.
func isLoopback(u *url.URL) bool {
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && ip.IsLoopback())
}

// allows reports whether a client has registered a redirect URI, which must be identical.
// Only programs on the user's machine may choose another port (RFC 8252).
func (c *Client) allows(uri string) (*url.URL, bool) {
	given, ok := parseRedirect(uri)
	if !ok {
		return nil, false
	}
	withoutPort := func(u url.URL) string {
		u.Host = strings.TrimSuffix(u.Host, ":"+u.Port())
		return u.String()
	}
	return given, slices.ContainsFunc(c.RedirectURIs, func(registered string) bool {
		if registered == uri {
			return true
		}
		u, err := url.Parse(registered)
		return err == nil && isLoopback(given) && isLoopback(u) && withoutPort(*u) == withoutPort(*given)
	})
}
