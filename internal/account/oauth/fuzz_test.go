package oauth

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"palmares/auth"
	"palmares/internal/core/problem"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// publish is a transport that returns a document for every URL.
type publish string

func (p publish) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(p)))}, nil
}

func newFuzzServer(f *testing.F) *Server {
	f.Helper()
	db := testkit.Open(f, testkit.SQLite(f))
	log := slog.New(slog.DiscardHandler)
	s, err := New(f.Context(), Config{Resources: Resources{base, "/mcp"}, ServiceName: "Palmarès", Store: db, Keyring: auth.NewKeyring(db, log, auth.Rules{}), Log: log})
	check.OK(f, err)
	s.transport = publish("")
	return s
}

// FuzzClientID checks that a client_id is accepted only as it was signed, and that it
// contains what was registered.
func FuzzClientID(f *testing.F) {
	s := newFuzzServer(f)
	f.Add(registeredPrefix, "Test", local, uint(3), byte(1))
	f.Add("=", "é", "https://a.example/", uint(9999), byte(0))
	f.Add("https://app.example/client.json", "", "", uint(0), byte(32))
	f.Fuzz(func(t *testing.T, other, name, redirect string, at uint, change byte) {
		want := registration{s.now().Unix(), cleanName(name), []string{strings.ToValidUTF8(redirect, "")}}
		id, err := s.signRegistration(want)
		check.OK(t, err)
		if len(id) > maxClientID {
			return // is not issued
		}
		r := httptest.NewRequest(http.MethodGet, AuthorizePath, nil)
		client, err := s.client(r.Context(), 1, id)
		if err != nil || client.ID != id || client.Name != want.Name || !reflect.DeepEqual(client.RedirectURIs, want.Redirects) || client.Verified {
			t.Fatalf("%+v: got %+v and %v, want the registered client", want, client, err)
		}
		forged := []byte(id)
		forged[len(registeredPrefix)+int(at%uint(len(id)-len(registeredPrefix)))] ^= change
		for _, forged := range []string{string(forged), other, id + other, other + id} {
			if forged == id {
				continue
			}
			client, err := s.client(r.Context(), 1, forged)
			check.Equal(t, client, nil, forged)
			check.Fails(t, err, forged)
		}
	})
}

// FuzzMetadata checks that a client's metadata document is accepted only if it is about its
// own URL, with redirect URIs that a browser may be sent to and a name in one short line.
func FuzzMetadata(f *testing.F) {
	s := newFuzzServer(f)
	const id = "https://app.example/client.json"
	for _, body := range []string{
		`{"client_id":"` + id + `","client_name":"App","redirect_uris":["https://app.example/back"]}`,
		`{"client_id":"` + id + `","client_name":"A\u202eB\n","redirect_uris":["http://localhost/","vscode://x/y"],"token_endpoint_auth_method":"none"}`,
		`{"client_id":"` + id + `","redirect_uris":["https://app.example/"],"client_secret":"x"}`,
		`{"client_id":"` + id + `","redirect_uris":["javascript://a.example/%0aalert(1)"]}`,
		`{"client_id":"https://other.example/","redirect_uris":["javascript:alert(1)"]}`, `[]`, ``,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		s.transport = publish(body)
		client, err := s.fetch(t.Context(), id, "app.example")
		if err != nil {
			if client != nil || !errors.Is(err, errDocument) && !errors.Is(err, errFetch) {
				t.Errorf("%q: got %+v and %v, want no client", body, client, err)
			}
			return
		}
		line := !strings.ContainsFunc(client.Name, unicode.IsControl) && utf8.RuneCountInString(client.Name) <= maxName && cleanName(client.Name) == client.Name
		if client.ID != id || client.Host != "app.example" || !client.Verified || !line || len(client.RedirectURIs) == 0 || len(body) > maxDocument {
			t.Errorf("%q: got %+v, want a valid client", body, client)
		}
		for _, uri := range client.RedirectURIs {
			u, err := url.Parse(uri)
			if err != nil || u.Host == "" || u.User != nil || u.Scheme == "javascript" || u.Scheme == "data" || strings.ContainsAny(uri, "\r\n\"<> ") {
				t.Errorf("%q: got redirect URI %q, want one for browsers", body, uri)
			}
		}
	})
}

// FuzzAuthorize checks that a browser is only sent back to the registered redirect URI, with
// the issuer and the state, whatever the request of an application contains.
func FuzzAuthorize(f *testing.F) {
	s := newFuzzServer(f)
	id, err := s.signRegistration(registration{s.now().Unix(), "Test", []string{local, "https://app.example/back?x=1"}})
	check.OK(f, err)
	f.Add(query(id, local).Encode())
	f.Add(query(id, "https://app.example/back?x=1", "response_type", "token").Encode())
	f.Add(query(id, "http://127.0.0.1:9/callback", "state", "").Encode() + "&state=1&state=2")
	f.Add(query(id, local+"/../x").Encode())
	const published = "https://app.example/client.json"
	s.transport = publish(`{"client_id":"` + published + `","redirect_uris":["` + local + `","https://app.example/back?x=1"]}`)
	f.Add(query(published, local).Encode())
	f.Add(query(published, "https://app.example/back?x=1", "response_type", "token").Encode())
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequest(http.MethodGet, AuthorizePath, nil)
		r.URL.RawQuery = query
		request, err := s.Parse(r, 1)
		location := ""
		var rejection *Rejection
		switch {
		case err == nil:
			location = s.Deny(request)
		case errors.As(err, &rejection):
			location = rejection.Location
		default:
			if status := problem.Of(err).Code.Status(); status >= 500 {
				t.Errorf("%q: got %v, want no server error", query, err)
			}
			return
		}
		to, err := url.Parse(location)
		check.OK(t, err, "%q: %q", query, location)
		back := to.Scheme+"://"+to.Hostname()+to.EscapedPath() == "http://127.0.0.1/callback" || strings.HasPrefix(location, "https://app.example/back?x=1&")
		if states := r.URL.Query()["state"]; !back || to.Query().Get("iss") != base || len(to.Query()["iss"]) != 1 || len(states) > 0 && to.Query().Get("state") != states[0] {
			t.Errorf("%q: got %q, want a registered URI with issuer and state", query, location)
		}
	})
}

// FuzzRedirect checks that a redirect URI is allowed only if it is identical to the
// registered one, or differs in the port of this machine alone.
func FuzzRedirect(f *testing.F) {
	f.Add(local, "http://127.0.0.1:9/callback")
	f.Add("https://app.example/a", "https://app.example:443/a")
	f.Add("http://localhost/", "http://localhost:1/#x")
	f.Add("http://[::1]/a", "http://[::1]:80/a")
	f.Add("vscode://x", "vscode://x:1")
	f.Fuzz(func(t *testing.T, registered, uri string) {
		client := Client{RedirectURIs: []string{registered}}
		u, allowed := client.allows(uri)
		if !allowed {
			return
		}
		if registered != uri {
			other, err := url.Parse(registered)
			if err != nil || u.Scheme != "http" || other.Scheme != "http" || u.Hostname() != other.Hostname() || u.EscapedPath() != other.EscapedPath() || u.RawQuery != other.RawQuery {
				t.Errorf("%q for %q: got it allowed, want only another port", uri, registered)
			}
			if host := u.Hostname(); host != "localhost" && host != "::1" && !strings.HasPrefix(host, "127.") && !strings.HasPrefix(host, "::ffff:") && !strings.Contains(host, ":") {
				t.Errorf("%q for %q: got it allowed, want only this machine", uri, registered)
			}
		}
		check.True(t, len(uri) <= maxRedirect && !strings.ContainsAny(uri, "\r\n #\\"), "%q: got it allowed, want no fragment or line break", uri)
	})
}
