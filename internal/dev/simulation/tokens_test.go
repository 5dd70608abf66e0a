package simulation

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/lang"
	"palmares/internal/core/store"
)

// staleFor is how long a server may accept a key or token that has ended.
const staleFor = 2 * time.Second

// The documented lifetimes.
const (
	linkLifetime    = 15 * time.Minute
	codeLifetime    = time.Minute
	accessLifetime  = time.Hour
	sessionLifetime = 30 * 24 * time.Hour
	refreshLifetime = 60 * 24 * time.Hour
)

type tokenWorld struct {
	*world
	store    *store.Store
	servers  []*tokenServer
	links    []*link
	sessions []*browser
	grants   []*grant
	people   int
}

type tokenServer struct {
	*machine
	*auth.Accounts
	keyring *auth.Keyring
}

// link is an email to sign in with.
type link struct {
	auth.Challenge
	until time.Time
	used  bool
}

// browser is signed in.
type browser struct {
	session string
	key     string // derived from the session
	account *ent.Account
	until   time.Time
	ended   time.Time // zero while it is signed in
}

// grant is a connected application.
type grant struct {
	account      *ent.Account
	code         string
	codeUntil    time.Time
	access       string
	accessUntil  time.Time
	refresh      string
	refreshUntil time.Time
	former       []string // refresh tokens that were used
	ended        time.Time
	formerAccess string
	replaced     time.Time // when formerAccess was
	lost         bool      // the application has not received its newest tokens
}

const (
	clientID = "client"
	resource = "https://palmares.example/mcp"
	redirect = "https://client.example/callback"
	verifier = "a verifier of at least forty-three characters"
)

// simulateTokens checks that valid sessions, links, keys and tokens are accepted, and
// that none is accepted that has expired, was revoked or used, or is forged.
func simulateTokens(base *world) {
	w := &tokenWorld{world: base, store: base.openStore()}
	for i := range 2 {
		keyring := auth.NewKeyring(w.store, discard, auth.Rules{Accepts: func(string, *http.Request) bool { return true }})
		w.servers = append(w.servers, &tokenServer{newMachine(fmt.Sprintf("server %d", i)), auth.NewAccounts(w.store), keyring})
	}
	// The hour starts shortly before these expire.
	start := time.Now().Add(refreshLifetime)
	until := func(moment time.Time) { time.Sleep(max(time.Until(moment), 0)) }
	for _, early := range []struct {
		lifetime time.Duration
		add      func()
	}{{refreshLifetime, w.connect}, {sessionLifetime, w.signUp}, {accessLifetime, w.connect}} {
		until(start.Add(-early.lifetime))
		for range 2 {
			time.Sleep(w.upTo(length / 2))
			early.add()
		}
	}
	until(start)
	w.begin()
	steps := []func(){w.signUp, w.request, w.useLink, w.useLink, w.checkSession, w.checkSession, w.checkSession, w.endSession,
		w.connect, w.exchange, w.refresh, w.refresh, w.checkAccess, w.checkAccess, w.checkAccess, w.forge, w.forge, w.revoke}
	for w.left() > 0 {
		steps[w.IntN(len(steps))]()
		switch w.IntN(3) { // some steps follow each other closely
		case 0:
			time.Sleep(w.upTo(3 * time.Second))
		case 1:
			time.Sleep(w.upTo(8 * time.Minute))
		}
	}
}

func (w *tokenWorld) server() *tokenServer { return w.servers[w.IntN(len(w.servers))] }

func pick[T any](w *tokenWorld, all []T) (one T, ok bool) {
	if len(all) == 0 {
		return one, false
	}
	return all[w.IntN(len(all))], true
}

// request requests an email to sign in with.
func (w *tokenWorld) request() {
	w.people++
	w.planned("person %d requests a link", w.people)
	challenge, err := w.server().StartSignIn(context.Background(), fmt.Sprintf("person%d@example.com", w.people),
		auth.Sender{Network: fmt.Sprintf("192.0.2.%d", w.people%250), Wider: fmt.Sprintf("192.0.%d.0/24", w.people)})
	w.check(err)
	w.links = append(w.links, &link{Challenge: challenge, until: time.Now().Add(linkLifetime)})
}

// signUp requests a link and uses it.
func (w *tokenWorld) signUp() {
	w.request()
	w.use(w.links[len(w.links)-1], w.server())
}

func (w *tokenWorld) useLink() {
	if l, ok := pick(w, w.links); ok {
		if w.oneIn(3) { // at the same time on both servers
			w.use(l, w.servers...)
		} else {
			w.use(l, w.server())
		}
	}
}

func (w *tokenWorld) use(l *link, servers ...*tokenServer) {
	w.planned("a link is used on %d servers", len(servers))
	expired, used := !time.Now().Before(l.until), l.used
	var mu sync.Mutex
	var accepted []string
	var refusals []error
	var using sync.WaitGroup
	for _, s := range servers {
		using.Go(func() {
			found, err := s.ConfirmationByLink(s, l.Link)
			token := ""
			if err == nil {
				token, err = s.SignIn(s, found, "browser", lang.English)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				refusals = append(refusals, err)
			} else {
				accepted = append(accepted, token)
			}
		})
	}
	using.Wait()
	if want := !expired && !used; len(accepted) > 1 || want != (len(accepted) == 1) {
		w.violated("a link that is expired (%t) or used (%t) signed in %d browsers: %v", expired, used, len(accepted), refusals)
	}
	for _, err := range refusals {
		if !errors.Is(err, auth.ErrUsed) && !errors.Is(err, auth.ErrExpired) {
			w.violated("a link got the error %v", err)
		}
	}
	for _, token := range accepted {
		l.used = true
		account, err := servers[0].SessionAccount(servers[0], token)
		w.check(err)
		if account == nil {
			w.violated("a new session is not accepted")
			return
		}
		key, err := servers[0].SessionKey(servers[0], token)
		w.check(err)
		w.sessions = append(w.sessions, &browser{session: token, key: key, account: account, until: time.Now().Add(sessionLifetime)})
	}
}

// checkSession uses a session and its key.
func (w *tokenWorld) checkSession() {
	b, ok := pick(w, w.sessions)
	if !ok {
		return
	}
	s := w.server()
	s.storeDown.Store(w.oneIn(10))
	w.planned("a session is used on %s", s.name)
	account, err := s.SessionAccount(s, b.session)
	valid := b.ended.IsZero() && time.Now().Before(b.until)
	if down := s.storeDown.Swap(false); down != (err != nil) || (account != nil) != (valid && !down) {
		w.violated("%s: got %v and error %v for a session that is valid: %t", s.name, account, err, valid)
	}
	w.present(s, "a session's key", b.key, b.until, b.ended)
}

// present sends a key or token that is valid until it expires or ended before.
func (w *tokenWorld) present(s *tokenServer, what, text string, until, ended time.Time) {
	end := until
	if !ended.IsZero() && ended.Before(end) {
		end = ended
	}
	now := time.Now()
	switch accepted := s.accepts(text); {
	case !accepted && now.Before(end):
		w.violated("%s refuses %s that is valid until %s", s.name, what, end)
	case accepted && !now.Before(end.Add(staleFor)):
		w.violated("%s accepts %s that ended at %s", s.name, what, end)
	}
}

func (s *tokenServer) accepts(text string) (accepted bool) {
	r := httptest.NewRequestWithContext(s, http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+text)
	s.keyring.Identify(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { accepted = true })).ServeHTTP(httptest.NewRecorder(), r)
	return accepted
}

// endSession signs a browser out, or all browsers of its account.
func (w *tokenWorld) endSession() {
	b, ok := pick(w, w.sessions)
	if !ok || !b.ended.IsZero() {
		return
	}
	s, all := w.server(), w.oneIn(2)
	w.planned("a session is ended on %s, all: %t", s.name, all)
	if !all {
		w.check(s.EndSession(s, b.session))
		b.ended = time.Now()
		return
	}
	w.check(s.EndSessions(s, b.account))
	for _, other := range w.sessions {
		if other.account.ID == b.account.ID && other.ended.IsZero() {
			other.ended = time.Now()
		}
	}
}

// connect authorizes an application and often exchanges its code.
func (w *tokenWorld) connect() {
	b, ok := pick(w, w.sessions)
	if !ok {
		w.signUp()
		b = w.sessions[len(w.sessions)-1]
	}
	s := w.server()
	w.planned("an application is connected on %s", s.name)
	proof := sha256.Sum256([]byte(verifier))
	code, err := s.CreateGrant(s, b.account, auth.Grant{ClientID: clientID, ClientName: "Client", Resource: resource, RedirectURI: redirect,
		Challenge: base64.RawURLEncoding.EncodeToString(proof[:])})
	w.check(err)
	g := &grant{account: b.account, code: code, codeUntil: time.Now().Add(codeLifetime)}
	w.grants = append(w.grants, g)
	if w.oneIn(3) {
		time.Sleep(w.upTo(2 * codeLifetime))
	}
	if !w.oneIn(4) {
		w.exchangeCode(g, w.oneIn(5))
	}
}

func (w *tokenWorld) exchange() {
	if g, ok := pick(w, w.grants); ok {
		w.exchangeCode(g, w.oneIn(5))
	}
}

// exchangeCode exchanges a code. If it was used before, or with a wrong proof, the
// grant ends.
func (w *tokenWorld) exchangeCode(g *grant, forged bool) {
	s := w.server()
	w.planned("a code is exchanged on %s, forged: %t", s.name, forged)
	x := auth.CodeExchange{Code: g.code, ClientID: clientID, RedirectURI: redirect, Verifier: verifier}
	if forged {
		x.Verifier += "?"
	}
	tokens, err := s.ExchangeCode(s, x)
	expired := time.Now().Unix() >= g.codeUntil.Unix()
	valid := g.ended.IsZero() && g.access == "" && !forged
	if w.refused(err) == (valid && !expired) {
		w.violated("%s: got error %v for a code that is valid: %t", s.name, err, valid && !expired)
	}
	switch {
	case err == nil:
		g.receive(tokens)
	case !valid: // a copy was used
		g.end()
	}
}

// refused reports whether an error says that a grant is not valid.
func (w *tokenWorld) refused(err error) bool {
	if err != nil && !errors.Is(err, auth.ErrInvalidGrant) {
		w.violated("got the error %v, want that the grant is not valid", err)
	}
	return err != nil
}

func (g *grant) receive(tokens auth.Tokens) {
	if g.refresh != "" {
		g.former = append(g.former, g.refresh)
		g.formerAccess, g.replaced = g.access, time.Now()
	}
	g.access, g.accessUntil = tokens.Access, time.Unix(time.Now().Add(accessLifetime).Unix(), 0)
	g.refresh, g.refreshUntil = tokens.Refresh, time.Unix(time.Now().Add(refreshLifetime).Unix(), 0)
}

func (g *grant) end() {
	if g.ended.IsZero() {
		g.ended = time.Now()
	}
}

// refresh presents a refresh token: the current one, one that was used, or the current
// one on both servers at the same time.
func (w *tokenWorld) refresh() {
	g, ok := pick(w, w.grants)
	if !ok || g.refresh == "" {
		return
	}
	s, token, current := w.server(), g.refresh, true
	if len(g.former) > 0 && w.oneIn(4) {
		token, current = g.former[w.IntN(len(g.former))], false
	}
	valid := g.ended.IsZero() && current && !g.lost && time.Now().Before(g.refreshUntil)
	if w.oneIn(6) {
		w.refreshTwice(g, token, valid)
		return
	}
	lost := w.oneIn(8)
	w.planned("a token is refreshed on %s, current: %t, response lost: %t", s.name, current, lost)
	if lost {
		s.loseCommits.Store(1)
	}
	tokens, err := s.RefreshTokens(s, token, clientID, "")
	if s.loseCommits.Store(0); lost {
		g.lost = g.lost || valid
		if err == nil {
			w.violated("%s: got tokens without a commit", s.name)
		}
	} else if w.refused(err) == valid {
		w.violated("%s: got error %v for a refresh token that is valid: %t", s.name, err, valid)
	}
	switch expired := current && !g.lost && !time.Now().Before(g.refreshUntil); {
	case err == nil:
		g.receive(tokens)
	case valid, expired:
		if g.lost { // its access token was replaced
			g.formerAccess, g.replaced, g.access = g.access, time.Now(), ""
		}
	default: // a copy was used
		g.end()
	}
}

// refreshTwice uses a refresh token on both servers: one of the two has a copy.
func (w *tokenWorld) refreshTwice(g *grant, token string, valid bool) {
	w.planned("a token is refreshed on both servers")
	var mu sync.Mutex
	accepted := 0
	var using sync.WaitGroup
	for _, s := range w.servers {
		using.Go(func() {
			if _, err := s.RefreshTokens(s, token, clientID, ""); err == nil {
				mu.Lock()
				defer mu.Unlock()
				accepted++
			}
		})
	}
	using.Wait()
	if accepted > 1 || (accepted == 1) != valid {
		w.violated("%d of two servers accepted a refresh token that is valid: %t", accepted, valid)
	}
	if expired := g.ended.IsZero() && !g.lost && token == g.refresh && !valid; !expired {
		g.end()
	}
}

// checkAccess uses an access token, which may have been replaced.
func (w *tokenWorld) checkAccess() {
	g, ok := pick(w, w.grants)
	if !ok {
		return
	}
	s := w.server()
	w.planned("an access token is used on %s", s.name)
	if g.access != "" {
		w.present(s, "an access token", g.access, g.accessUntil, g.ended)
	}
	if g.formerAccess != "" {
		w.present(s, "an access token that was replaced", g.formerAccess, g.replaced, g.ended)
	}
}

// revoke disconnects an application.
func (w *tokenWorld) revoke() {
	g, ok := pick(w, w.grants)
	if !ok || g.refresh == "" {
		return
	}
	s := w.server()
	w.planned("an application is disconnected on %s", s.name)
	_, err := s.RevokeTokens(s, g.refresh, clientID)
	w.check(err)
	g.end()
}

// forge presents tokens whose checksum is right, but not their secret.
func (w *tokenWorld) forge() {
	s := w.server()
	w.planned("tokens are forged on %s", s.name)
	if b, ok := pick(w, w.sessions); ok {
		account, err := s.SessionAccount(s, b.session[1:]+b.session[:1])
		w.check(err)
		if account != nil && b.session[1:]+b.session[:1] != b.session {
			w.violated("%s accepts a forged session", s.name)
		}
		if s.accepts(forged(b.key)) {
			w.violated("%s accepts a forged key", s.name)
		}
	}
	g, ok := pick(w, w.grants)
	if !ok || g.refresh == "" {
		return
	}
	if g.access != "" && s.accepts(forged(g.access)) {
		w.violated("%s accepts a forged access token", s.name)
	}
	if _, err := s.RefreshTokens(s, forged(g.refresh), clientID, ""); !w.refused(err) {
		w.violated("%s accepts a forged refresh token", s.name)
	}
	g.end() // whoever forged it knows the secret that all refresh tokens of the grant share
}

// forged returns a key or token with another secret and the right checksum.
func forged(text string) string {
	const base62, check = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 6
	prefix, body := text[:4], text[4:len(text)-check]
	last := strings.IndexByte(base62, body[len(body)-1])
	body = body[:len(body)-1] + string(base62[(last+1)%len(base62)])
	sum := crc32.ChecksumIEEE([]byte(body))
	digits := make([]byte, check)
	for i := range digits {
		digits[check-1-i] = base62[sum%62]
		sum /= 62
	}
	return prefix + body + string(digits)
}
