package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

const callback = "http://localhost:3000/callback"

// A client that publishes its metadata gets tokens for one resource, or for all of them.
// Clients with the official libraries are in test/clients/mcp.
func TestOAuthWithMetadataDocument(t *testing.T) {
	t.Parallel()
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		s := blackbox.Serve(t, cfg, "--demo")
		base := "http://" + s.Address
		var publisher *httptest.Server
		publisher = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"client_id":"%s/client.json","client_name":"Published","redirect_uris":[%q]}`, publisher.URL, callback)
		}))
		defer publisher.Close()
		connect := func(email, resource string) (tokens map[string]any) {
			query := url.Values{
				"client_id": {publisher.URL + "/client.json"}, "redirect_uri": {callback}, "response_type": {"code"}, "state": {"s"}, "resource": {resource},
				"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"}, // of RFC 7636
			}
			answer := s.Consent(t, base+"/oauth/authorize?"+query.Encode(), email).Query()
			_, tokens = postForm(t, s, "/oauth/token", url.Values{
				"grant_type": {"authorization_code"}, "client_id": {publisher.URL + "/client.json"}, "redirect_uri": {callback}, "code": {answer.Get("code")},
				"code_verifier": {"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"}, "resource": {resource},
			})
			return tokens
		}
		call := func(path string, token any) *http.Response {
			method, body := "GET", ""
			if path == "/mcp" {
				method, body = "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_categories"}}`
			}
			return s.Call(t, method, path, body, "Authorization", fmt.Sprint("Bearer ", token), "Accept", "application/json, text/event-stream")
		}
		everything := connect("ben@example.com", base+"/")["access_token"]
		for _, path := range []string{"/api/embeddings/plume", "/mcp"} {
			got := call(path, everything)
			check.Equal(t, got.StatusCode, 200, path)
			check.Equal(t, got.Header.Get("X-RateLimit-Tier"), "free", path)
		}
		agent := connect("ana@example.com", base+"/mcp")
		check.Equal(t, call("/mcp", agent["access_token"]).StatusCode, 200, "want the token accepted")
		for _, path := range []string{"/api/v1/tools", "/graphql?query={stats{toolsTotal}}", fmt.Sprint("/mcp?access_token=", agent["access_token"])} { // other resources, and a token in a URL
			check.Equal(t, call(path, agent["access_token"]).StatusCode, 401, path)
		}
		for _, token := range []any{agent["refresh_token"], "oat_x", "x", "pal_x"} {
			got := call("/mcp", token)
			check.Equal(t, got.StatusCode, 401, "%.10s", token)
			check.Equal(t, got.Header.Get("WWW-Authenticate"), `Bearer error="invalid_token", resource_metadata="`+base+`/.well-known/oauth-protected-resource/mcp", scope="read"`)
		}
		preflight := s.Call(t, "OPTIONS", "/.well-known/oauth-protected-resource/mcp", "", "Origin", "https://inspector.example", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "mcp-protocol-version")
		check.Contains(t, preflight.Header.Get("Access-Control-Allow-Headers"), "MCP-Protocol-Version", preflight.Header)
	})
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
