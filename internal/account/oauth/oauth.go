// Package oauth is the authorization server of the service (OAuth 2.1, as the Model
// Context Protocol requires): applications that cannot ask their users for an API key get
// tokens with it. Package portal asks the user, and package auth stores the tokens.
package oauth

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"palmares/auth"
	"palmares/internal/core/client"
	"palmares/internal/core/limiter"
	"palmares/internal/core/problem"
	"palmares/internal/core/quota"
	"palmares/internal/core/store"
)

// The paths of the server.
const (
	AuthorizePath = "/oauth/authorize" // redirects to the page that asks the user
	tokenPath     = "/oauth/token"
	registerPath  = "/oauth/register"
	revokePath    = "/oauth/revoke"

	// ResourcePath is followed by the path of a resource.
	ResourcePath       = "/.well-known/oauth-protected-resource"
	serverMetadataPath = "/.well-known/oauth-authorization-server"
)

// scope is that of all tokens: they may read what the plan of their account includes.
// Private saved queries are another one, which applications have to request.
const scope, queriesScope = "read", "saved_queries"

// scopeOf returns the scopes of tokens.
func scopeOf(privateQueries bool) string {
	if privateQueries {
		return scope + " " + queriesScope
	}
	return scope
}

// Config configures a server.
type Config struct {
	Resources
	ServiceName    string
	Loopback       bool // clients on this machine may publish metadata documents
	TrustedProxies []netip.Prefix
	Store          *store.Store
	Keyring        *auth.Keyring
	Log            *slog.Logger
}

// Server is the authorization server.
type Server struct {
	Config
	Accounts  *auth.Accounts
	secret    []byte // signs the ids of registered clients
	now       func() time.Time
	transport http.RoundTripper
	documents interface { // otter's type would make packages that use a Server compile it again
		GetIfPresent(id string) (document, bool)
		Set(id string, found document) (document, bool)
	}
	fetches singleflight.Group
	seed    maphash.Seed
	mux     *http.ServeMux

	registrations limiter.Rate[quota.Subject] // by address
	tokens        limiter.Rate[quota.Subject] // by address; hosted clients share few
	hosts         limiter.Rate[quota.Subject] // fetches of metadata documents, by host
	accounts      limiter.Rate[quota.Subject] // the same, by account
}

// New returns a server.
func New(ctx context.Context, cfg Config) (*Server, error) {
	secret, err := cfg.Store.Secret(ctx, "oauth")
	if err != nil {
		return nil, err
	}
	s := &Server{
		Config: cfg, Accounts: auth.NewAccounts(cfg.Store), secret: secret, now: time.Now, seed: maphash.MakeSeed(),
	}
	s.transport, s.mux = s.newTransport(), s.newMux()
	s.documents = otter.Must(&otter.Options[string, document]{
		MaximumSize: maxDocuments, ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[string, document]) time.Duration {
			if e.Value.err != nil {
				return failureLifetime
			}
			return lastLifetime
		}),
	})
	for rate, perMinute := range map[*limiter.Rate[quota.Subject]]int{&s.registrations: 60, &s.tokens: 1_000, &s.hosts: 30, &s.accounts: 10} {
		rate.Limit, rate.Now = perMinute, func() time.Time { return s.now() }
	}
	return s, nil
}

// Paths are those of the endpoints for programs, without the metadata of resources.
var Paths = []string{tokenPath, revokePath, registerPath, serverMetadataPath, ResourcePath}

// newMux returns the endpoints for programs.
func (s *Server) newMux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle(serverMetadataPath, serveMetadata(map[string]any{
		"issuer":                 s.PublicURL,
		"authorization_endpoint": s.PublicURL + AuthorizePath,
		"token_endpoint":         s.PublicURL + tokenPath,
		"registration_endpoint":  s.PublicURL + registerPath,
		"revocation_endpoint":    s.PublicURL + revokePath,
		"service_documentation":  s.PublicURL + "/guides/agents",
		"scopes_supported":       []string{scope, queriesScope},
		"protected_resources":    []string{s.PublicURL, s.PublicURL + s.MCPPath},

		"response_types_supported":                       []string{"code"},
		"response_modes_supported":                       []string{"query"},
		"grant_types_supported":                          []string{"authorization_code", "refresh_token"},
		"code_challenge_methods_supported":               []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"none"},
		"revocation_endpoint_auth_methods_supported":     []string{"none"},
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          true,
	}))
	for path, scopes := range map[string][]string{"": {scope, queriesScope}, s.MCPPath: {scope}} { // MCP has no saved queries
		mux.Handle(ResourcePath+path, serveMetadata(map[string]any{
			"resource": s.PublicURL + path, "resource_name": s.ServiceName, "resource_documentation": s.PublicURL + "/guides/agents",
			"authorization_servers": []string{s.PublicURL}, "scopes_supported": scopes, "bearer_methods_supported": []string{"header"},
		}))
	}
	mux.HandleFunc(tokenPath, s.serveToken)
	mux.HandleFunc(revokePath, s.serveRevocation)
	mux.HandleFunc(registerPath, s.serveRegistration)
	return mux
}

// ServeHTTP serves the endpoints for programs.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func serveMetadata(content map[string]any) http.HandlerFunc {
	body, err := json.Marshal(content)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			problem.Write(w, problem.New(problem.WrongMethod, "Metadata supports only GET."))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "public, max-age=3600")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(body)
	}
}

// Resources are what access tokens are for: the whole service, or only what agents use.
type Resources struct {
	PublicURL string // the issuer, and the resource that includes all others
	MCPPath   string // where agents find the resource
}

// resource returns the canonical form of a resource, or "" for any that is not ours.
// Clients that parse a URL without a path add the slash.
func (s *Server) resource(given string) string {
	switch given {
	case s.PublicURL, s.PublicURL + "/":
		return s.PublicURL
	case s.PublicURL + s.MCPPath:
		return given
	}
	return ""
}

// Accepts reports whether a token for a resource may be sent with a request.
func (s Resources) Accepts(resource string, r *http.Request) bool {
	return resource == s.PublicURL || resource == s.PublicURL+s.MCPPath && r.URL.Path == s.MCPPath
}

// Challenge returns the header that makes agents start the authorization, or "" for
// requests that are not from agents.
func (s Resources) Challenge(r *http.Request) string {
	switch {
	case r.URL.Path != s.MCPPath:
		return ""
	case r.Header.Get("Authorization") == "":
		return `Bearer resource_metadata="` + s.PublicURL + ResourcePath + s.MCPPath + `", scope="` + scope + `"`
	}
	return `Bearer error="invalid_token", resource_metadata="` + s.PublicURL + ResourcePath + s.MCPPath + `", scope="` + scope + `"`
}

func (s *Server) address(r *http.Request) quota.Subject {
	return quota.Address(client.Address(r, s.TrustedProxies))
}
