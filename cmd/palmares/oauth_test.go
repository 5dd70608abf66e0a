package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
	"palmares/internal/dev/testkit/wait"
)

const callback = "http://localhost:3000/callback"

// agent is a client of the Go SDK whose user consents to everything.
type agent struct {
	*mcp.ClientSession
	t        *testing.T
	consents atomic.Int64
	tokens   []*oauth2.Token // all that it got
}

// connectAgent connects a client. It registers itself, unless it publishes its metadata.
func connectAgent(t *testing.T, s *blackbox.Server, email, metadata string) *agent {
	t.Helper()
	a := &agent{t: t}
	config := &sdkauth.AuthorizationCodeHandlerConfig{
		RedirectURL: callback,
		AuthorizationCodeFetcher: func(_ context.Context, args *sdkauth.AuthorizationArgs) (*sdkauth.AuthorizationResult, error) {
			answer := s.Consent(t, args.URL, fmt.Sprintf("%s+%d@example.com", email, a.consents.Add(1))).Query()
			return &sdkauth.AuthorizationResult{Code: answer.Get("code"), State: answer.Get("state"), Iss: answer.Get("iss")}, nil
		},
		NewTokenSource: func(ctx context.Context, config *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
			return sourceFunc(func() (*oauth2.Token, error) { // each call needs a new token
				expired := *token
				expired.AccessToken = ""
				next, err := config.TokenSource(ctx, &expired).Token()
				if err == nil {
					token = next
					a.tokens = append(a.tokens, token)
				}
				return token, err
			}), nil
		},
	}
	if metadata != "" {
		config.ClientIDMetadataDocumentConfig = &sdkauth.ClientIDMetadataDocumentConfig{URL: metadata}
	} else {
		config.DynamicClientRegistrationConfig = &sdkauth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{ClientName: "Go", RedirectURIs: []string{callback}}}
	}
	handler, err := sdkauth.NewAuthorizationCodeHandler(config)
	check.OK(t, err)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	a.ClientSession, err = client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "http://" + s.Address + "/mcp", OAuthHandler: handler, DisableStandaloneSSE: true}, nil)
	check.OK(t, err)
	t.Cleanup(func() { _ = a.Close() })
	return a
}

type sourceFunc func() (*oauth2.Token, error)

func (f sourceFunc) Token() (*oauth2.Token, error) { return f() }

func (a *agent) call(name string, arguments map[string]any) string {
	a.t.Helper()
	result, err := a.CallTool(a.t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	check.MustTrue(a.t, err == nil && !result.IsError, "%s: got %v, %+v, want a result", name, err, result)
	text := check.Try(json.Marshal(result.StructuredContent)).OK(a.t)
	return string(text)
}

var embeddings = map[string]any{"query": `{tool(slug: "plume") {embeddings {hash}}}`}

// A client calls tools without an account until one requires it. Then it signs in, and
// refreshes its tokens before each call.
func TestOAuthWithGoClient(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		s := blackbox.Serve(t, cfg, "--demo")
		a := connectAgent(t, s, "ana", "")
		a.call("list_categories", nil)
		check.Must(t, a.consents.Load(), 0, "consents for a call without an account")
		for range 3 {
			if got := a.call("graphql_query", embeddings); !strings.Contains(got, `"hash":"sha256-`) {
				t.Fatalf("got %s, want embeddings", got)
			}
		}
		if got := a.consents.Load(); got != 1 || len(a.tokens) < 2 {
			t.Fatalf("got %d consents and %d refreshes, want 1 and some", got, len(a.tokens))
		}
		current := a.tokens[len(a.tokens)-1]
		authorized := []string{"Authorization", "Bearer " + current.AccessToken}
		response := s.Call(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, append(authorized, "Accept", "application/json, text/event-stream")...)
		check.Equal(t, response.StatusCode, 200, "want the token accepted")
		for _, path := range []string{"/api/v1/tools", "/graphql?query={stats{toolsTotal}}", "/mcp?access_token=" + current.AccessToken} { // other resources, and a token in a URL
			check.Equal(t, s.Call(t, "GET", path, "", authorized...).StatusCode, 401, path)
		}
		for _, token := range []string{a.tokens[0].AccessToken, current.RefreshToken, "oat_x", "x", "pal_x"} { // replaced, and none
			response := s.Call(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Authorization", "Bearer "+token)
			want := `Bearer error="invalid_token", resource_metadata="http://` + s.Address + `/.well-known/oauth-protected-resource/mcp", scope="read"`
			if got := response.Header.Get("WWW-Authenticate"); token != a.tokens[0].AccessToken && (response.StatusCode != 401 || got != want) {
				t.Errorf("%.10s: got %d %s, want 401 %s", token, response.StatusCode, got, want)
			}
		}
		if status, _ := s.Get(t, "/api/v1/tools"); status != 200 {
			t.Errorf("got %d, want 200 without a token", status)
		}

		// A token that is used again ends the grant.
		status, got := postForm(t, s, "/oauth/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {"x"}, "refresh_token": {a.tokens[0].RefreshToken}})
		check.True(t, status == 400 && got["error"] == "invalid_grant", "got %d %v, want invalid_grant", status, got)
		wait.Until(t, "the last token stops working", func() bool {
			return s.Call(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, authorized...).StatusCode == 401
		})
	})
}

func TestOAuthWithMetadataDocument(t *testing.T) {
	t.Parallel()
	s := blackbox.Serve(t, testkit.SQLite(t), "--demo")
	var publisher *httptest.Server
	publisher = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"client_id":"%s/client.json","client_name":"Published","redirect_uris":[%q]}`, publisher.URL, callback)
	}))
	defer publisher.Close()
	query := url.Values{
		"client_id": {publisher.URL + "/client.json"}, "redirect_uri": {callback}, "response_type": {"code"}, "state": {"s"}, "resource": {"http://" + s.Address},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"}, // of RFC 7636
	}
	answer := s.Consent(t, "http://"+s.Address+"/oauth/authorize?"+query.Encode(), "ben@example.com").Query()
	form := url.Values{
		"grant_type": {"authorization_code"}, "client_id": {publisher.URL + "/client.json"}, "redirect_uri": {callback}, "code": {answer.Get("code")},
		"code_verifier": {"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}, "resource": {"http://" + s.Address + "/"},
	}
	_, tokens := postForm(t, s, "/oauth/token", form)
	for _, path := range []string{"/api/embeddings/plume", "/mcp"} { // a token for everything
		method, body := "GET", ""
		if path == "/mcp" {
			method, body = "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_categories"}}`
		}
		got := s.Call(t, method, path, body, "Authorization", fmt.Sprint("Bearer ", tokens["access_token"]), "Accept", "application/json, text/event-stream")
		check.Equal(t, got.StatusCode, 200, path)
		check.Equal(t, got.Header.Get("X-RateLimit-Tier"), "free", path)
	}
	preflight := s.Call(t, "OPTIONS", "/.well-known/oauth-protected-resource/mcp", "", "Origin", "https://inspector.example", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "mcp-protocol-version")
	check.Contains(t, preflight.Header.Get("Access-Control-Allow-Headers"), "MCP-Protocol-Version", preflight.Header)
}

// postForm sends a form from a page of another origin, and returns the status and the JSON in the response.
func postForm(t *testing.T, s *blackbox.Server, path string, form url.Values) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Address+path, strings.NewReader(form.Encode()))
	check.OK(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "https://inspector.example")
	response := check.Try(http.DefaultClient.Do(r)).OK(t)
	defer response.Body.Close()
	check.Equal(t, response.Header.Get("Access-Control-Allow-Origin"), "*", "%s: CORS header", path)
	var content map[string]any
	check.OK(t, json.NewDecoder(response.Body).Decode(&content))
	return response.StatusCode, content
}
