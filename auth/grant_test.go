package auth

import (
	cryptorand "crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palmares/ent"
	"palmares/internal/core/lookup"
	"palmares/internal/core/store"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

const (
	testVerifier = "a-verifier-of-at-least-forty-three-characters"
	testResource = "https://palmares.example/mcp"
)

// grants is a database with an account whose clock the test sets.
type grants struct {
	*Accounts
	t       *testing.T
	store   *store.Store
	keyring *Keyring
	account *ent.Account
	clock   atomic.Pointer[time.Time] // background refreshes read it
}

func (g *grants) time() time.Time { return *g.clock.Load() }

func (g *grants) wait(d time.Duration) {
	later := g.time().Add(d)
	g.clock.Store(&later)
}

func eachGrants(t *testing.T, test func(*grants)) {
	t.Parallel()
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		g := &grants{Accounts: NewAccounts(s), t: t, store: s, keyring: newKeyring(s)}
		now := time.Now()
		g.clock.Store(&now)
		SetClock(g.time, g.Accounts, g.keyring)
		g.keyring.rules.Accepts = func(resource string, r *http.Request) bool { return resource == testResource && r.URL.Path == "/mcp" }
		g.account, _ = createAccount(t, s, "ana@example.com", Developer, 0)
		g.now = g.time
		test(g)
	})
}

// code returns a code and the request that exchanges it.
func (g *grants) code() CodeExchange {
	g.t.Helper()
	challenge := sha256.Sum256([]byte(testVerifier))
	code := check.Try(g.CreateGrant(g.t.Context(), g.account, Grant{
		ClientID: "client", ClientName: "Client", Resource: testResource, RedirectURI: "http://localhost/callback",
		Challenge: base64.RawURLEncoding.EncodeToString(challenge[:]),
	})).OK(g.t)
	return CodeExchange{Code: code, ClientID: "client", RedirectURI: "http://localhost/callback", Verifier: testVerifier}
}

func (g *grants) connect() Tokens {
	g.t.Helper()
	return check.Try(g.ExchangeCode(g.t.Context(), g.code())).OK(g.t)
}

func (g *grants) refresh(token string) (Tokens, error) {
	return g.RefreshTokens(g.t.Context(), token, "client", testResource)
}

// status returns the status of the response to a token.
func (g *grants) status(path, token string) int {
	request := httptest.NewRequest("GET", path, nil)
	request.Header.Set("Authorization", "Bearer "+token)
	response := httptest.NewRecorder()
	g.keyring.Identify(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		caller := CallerFrom(r.Context())
		check.Equal(g.t, caller.Account, g.account.ID)
		check.True(g.t, strings.HasPrefix(caller.Application, "app_"), "got caller %+v, want account %d and an application", caller, g.account.ID)
	})).ServeHTTP(response, request)
	return response.Code
}

func (g *grants) wantStatus(want int, path, token string) {
	g.t.Helper()
	check.Equal(g.t, g.status(path, token), want, path)
}

func TestGrant(t *testing.T) {
	eachGrants(t, func(g *grants) {
		code := g.code()
		tokens := check.Try(g.ExchangeCode(g.t.Context(), code)).OK(g.t)
		g.wantStatus(200, "/mcp", tokens.Access)
		g.wantStatus(401, "/api/v1/tools", tokens.Access) // another resource
		g.wantStatus(401, "/mcp?access_token="+tokens.Access, tokens.Access)
		g.wantStatus(401, "/mcp", tokens.Refresh)
		g.wantStatus(401, "/mcp", tokens.Access[:len(tokens.Access)-1])
		check.OK(g.t, g.keyring.SaveLastUsed(g.t.Context()))
		all := check.Try(g.Grants(g.t.Context(), g.account)).OK(g.t)
		check.Must(g.t, len(all), 1, "%+v", all)
		check.Must(g.t, all[0].ClientName, "Client")
		check.MustTrue(g.t, all[0].LastUsedAt.Equal(g.time().Truncate(time.Second)), "got %+v, want the client, used now", all)
		var stored string
		for _, column := range []string{"code_hash", "access_hash", "refresh_hash", "id", "access_id"} {
			stored += queryText(g.t, g.store, "SELECT "+column+" FROM oauth_grants") + "\n"
		}
		for _, secret := range []string{code.Code[16:48], tokens.Access[16:48], tokens.Refresh[16:48], tokens.Refresh[48:80]} {
			check.Lacks(g.t, stored, secret)
		}

		g.wait(AccessLifetime - time.Second)
		g.wantStatus(200, "/mcp", tokens.Access)
		g.wait(time.Second)
		g.wantStatus(401, "/mcp", tokens.Access)
		next := check.Try(g.refresh(tokens.Refresh)).OK(g.t)
		g.wantStatus(200, "/mcp", next.Access)

		g.wait(60*24*time.Hour - time.Second)
		last := check.Try(g.refresh(next.Refresh)).OK(g.t)
		g.wait(60 * 24 * time.Hour)
		check.Try(g.refresh(last.Refresh)).Is(g.t, ErrInvalidGrant, "after 60 days")
		check.OK(g.t, DeleteExpired(g.t.Context(), g.store, g.time().Add(time.Second)))
		check.Equal(g.t, queryText(g.t, g.store, "SELECT count(*) FROM oauth_grants"), "0", "grants after cleanup")
	})
}

func queryText(t *testing.T, s *store.Store, query string) (text string) {
	t.Helper()
	rows := check.Try(s.Write.QueryContext(t.Context(), query)).OK(t)
	defer rows.Close()
	for rows.Next() {
		check.OK(t, rows.Scan(&text))
	}
	return text
}

// Whoever copied a code or a refresh token gets nothing, and neither does anyone else from then on.
func TestCopiedTokens(t *testing.T) {
	eachGrants(t, func(g *grants) {
		for name, change := range map[string]func(*CodeExchange){
			"client":   func(x *CodeExchange) { x.ClientID = "other" },
			"redirect": func(x *CodeExchange) { x.RedirectURI = "http://localhost/other" },
			"verifier": func(x *CodeExchange) { x.Verifier += "x" },
			"none":     func(x *CodeExchange) { x.Verifier = "" },
		} {
			x := g.code()
			stolen := x
			change(&stolen)
			for _, attempt := range []CodeExchange{stolen, x} { // the code is known to someone else
				check.Try(g.ExchangeCode(g.t.Context(), attempt)).Is(g.t, ErrInvalidGrant, "another %s", name)
			}
		}
		x := g.code()
		x.Resource = "https://palmares.example"
		check.Try(g.ExchangeCode(g.t.Context(), x)).Is(g.t, ErrOtherTarget, "foreign resource")
		x.Resource = testResource
		tokens := check.Try(g.ExchangeCode(g.t.Context(), x)).OK(g.t)
		next := check.Try(g.refresh(tokens.Refresh)).OK(g.t)
		check.Try(g.ExchangeCode(g.t.Context(), x)).Is(g.t, ErrInvalidGrant, "replayed code")
		g.wait(lookup.StaleFor)
		g.wantStatus(401, "/mcp", next.Access)

		expired := g.code()
		g.wait(codeLifetime)
		check.Try(g.ExchangeCode(g.t.Context(), expired)).Is(g.t, ErrInvalidGrant, "expired code")

		tokens = g.connect()
		next = check.Try(g.refresh(tokens.Refresh)).OK(g.t)
		check.Try(g.RefreshTokens(g.t.Context(), next.Refresh, "other", "")).Is(g.t, ErrInvalidGrant, "other client")
		check.Try(g.RefreshTokens(g.t.Context(), next.Refresh, "client", "https://palmares.example")).Is(g.t, ErrOtherTarget, "foreign resource")
		// Only someone who had a token of the grant can end it.
		forged := tokenText(refreshPrefix, next.Refresh[4:16]+strings.Repeat("a", 2*secretLength))
		check.Try(g.refresh(forged)).Is(g.t, ErrInvalidGrant, "forged token")
		next = check.Try(g.refresh(next.Refresh)).OK(g.t, "after a forged token")
		for _, token := range []string{tokens.Refresh, next.Refresh} {
			check.Try(g.refresh(token)).Is(g.t, ErrInvalidGrant, "reused token")
		}
		g.wait(lookup.StaleFor)
		g.wantStatus(401, "/mcp", next.Access)
	})
}

func TestConcurrentRefreshes(t *testing.T) {
	eachGrants(t, func(g *grants) {
		for range 5 {
			tokens := g.connect()
			var mu sync.Mutex
			var got []Tokens
			var running sync.WaitGroup
			for range 6 {
				running.Go(func() {
					next, err := g.refresh(tokens.Refresh)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err == nil:
						got = append(got, next)
					case !errors.Is(err, ErrInvalidGrant):
						g.t.Errorf("got %v, want ErrInvalidGrant", err)
					}
				})
			}
			running.Wait()
			check.Must(g.t, len(got), 1, "refreshes of one token")
			check.Try(g.refresh(got[0].Refresh)).Is(g.t, ErrInvalidGrant)
		}
	})
}

// Random refreshes, revocations and passing time agree with a model that remembers which tokens are current.
func TestRandomGrants(t *testing.T) {
	eachGrants(t, func(g *grants) {
		type family struct {
			tokens  []Tokens // the last one is current
			ended   bool
			access  time.Time // when the current access token expires
			renewed time.Time
		}
		random := rand.New(rand.NewPCG(1, 2))
		var families []*family
		for step := range 150 {
			g.wait(2 * time.Second) // so that nothing is cached
			if len(families) == 0 || random.IntN(8) == 0 {
				families = append(families, &family{tokens: []Tokens{g.connect()}, access: g.time().Add(AccessLifetime), renewed: g.time()})
			}
			f := families[random.IntN(len(families))]
			current := len(f.tokens) - 1
			chosen := current
			if random.IntN(10) == 0 {
				chosen = random.IntN(len(f.tokens))
			}
			switch random.IntN(6) {
			case 0:
				g.wait(time.Duration(random.IntN(30)) * time.Minute)
			case 1:
				if random.IntN(4) == 0 {
					check.Try(g.RevokeTokens(g.t.Context(), f.tokens[chosen].Refresh, "client")).OK(g.t)
					f.ended = true
				}
			case 2, 3:
				next, err := g.refresh(f.tokens[chosen].Refresh)
				check.Must(g.t, (err == nil), !f.ended && chosen == current, "step %d: %v", step, err)
				if f.ended = f.ended || err != nil; !f.ended {
					f.tokens, f.access, f.renewed = append(f.tokens, next), g.time().Add(AccessLifetime), g.time()
				}
			default:
				want := 401
				if !f.ended && chosen == current && g.time().Unix() < f.access.Unix() {
					want = 200
				}
				g.wantStatus(want, "/mcp", f.tokens[chosen].Access)
			}
		}
	})
}

func TestGrantsOfAccounts(t *testing.T) {
	eachGrants(t, func(g *grants) {
		revoked, kept := g.connect(), g.connect()
		for _, client := range []string{"other", "client"} {
			check.Try(g.RevokeTokens(g.t.Context(), revoked.Access, client)).OK(g.t)
			g.wait(lookup.StaleFor)
			check.Equal(g.t, g.status("/mcp", revoked.Access) == 200, (client == "other"), "revoked by %s: token accepted", client)
		}
		g.wantStatus(200, "/mcp", kept.Access)
		check.OK(g.t, g.SetPlan(g.t.Context(), g.account, Pro))
		g.keyring.ForgetAccount(g.account.ID)
		request := httptest.NewRequest("GET", "/mcp", nil)
		request.Header.Set("Authorization", "Bearer "+kept.Access)
		caller, err := g.keyring.caller(request)
		check.True(g.t, err == nil && caller.Plan == Pro, "got %+v, %v, want the new plan", caller, err)
		if connected, err := g.IsConnected(g.t.Context(), "client"); err != nil || !connected {
			g.t.Errorf("got connected %v, %v, want true", connected, err)
		}
		if connected, err := g.IsConnected(g.t.Context(), "other"); err != nil || connected {
			g.t.Errorf("got connected %v, %v, want false", connected, err)
		}
		for i := range maxGrants {
			g.wait(time.Second)
			g.connect()
			all := check.Try(g.Grants(g.t.Context(), g.account)).OK(g.t)
			check.Must(g.t, len(all), min(i+2, maxGrants))
		}
		last := g.connect()
		other, _ := createAccount(g.t, g.store, "ben@example.com", Developer, 0)
		all := check.Try(g.Grants(g.t.Context(), g.account)).OK(g.t)
		check.OK(g.t, g.RevokeGrant(g.t.Context(), other, all[0].ID))
		if left, err := g.Grants(g.t.Context(), g.account); err != nil || len(left) != maxGrants {
			g.t.Errorf("got %d grants, %v, want all: another account cannot revoke them", len(left), err)
		}
		check.OK(g.t, g.RevokeGrant(g.t.Context(), g.account, all[0].ID))
		check.OK(g.t, g.Delete(g.t.Context(), g.account))
		g.keyring.ForgetAccount(g.account.ID)
		g.wantStatus(401, "/mcp", last.Access)
		check.Equal(g.t, queryText(g.t, g.store, "SELECT count(*) FROM oauth_grants"), fmt.Sprint(0), "grants of a deleted account")
	})
}

// The shipped nginx exempts callers with a key or a token from its limit for visitors:
// hosted agents share few addresses.
func TestProxyExemptsTokens(t *testing.T) {
	conf := check.Try(os.ReadFile("../deploy/nginx.conf")).OK(t)
	pattern := regexp.MustCompile(`"~\*(\^Bearer [^"]+)" 1;`).FindSubmatch(conf)
	check.MustTrue(t, pattern != nil, "got no pattern of keys in nginx.conf, want one")
	exempt := regexp.MustCompile("(?i)" + string(pattern[1]))
	body := readText(cryptorand.Reader, idLength+secretLength)
	for token, want := range map[string]bool{
		tokenText(accessPrefix, body): true, tokenText(keyPrefix, body): true, tokenText(refreshPrefix, body): false, tokenText(accessPrefix, body[1:]): false,
	} {
		check.Equal(t, exempt.MatchString("Bearer "+token), want, "%s: exempt", token)
	}
}

// What could not have been issued is refused, without tokens.
func TestMalformedTokens(t *testing.T) {
	eachGrants(t, func(g *grants) {
		tokens, err := g.ExchangeCode(g.t.Context(), CodeExchange{Code: "x"})
		check.Is(g.t, err, ErrInvalidGrant, "code")
		check.Equal(g.t, tokens, Tokens{}, "code")
		tokens, err = g.refresh("x")
		check.Is(g.t, err, ErrInvalidGrant, "refresh token")
		check.Equal(g.t, tokens, Tokens{}, "refresh token")
		valid := g.connect()
		check.OK(g.t, g.store.Close())
		check.Try(g.refresh(valid.Refresh)).Fails(g.t, "without a database")
	})
}
