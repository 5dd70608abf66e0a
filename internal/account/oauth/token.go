package oauth

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"palmares/auth"
	"palmares/internal/core/problem"
)

const maxForm = 16 << 10

// serveToken exchanges a code or a refresh token for new tokens.
func (s *Server) serveToken(w http.ResponseWriter, r *http.Request) {
	if !s.readForm(w, r) {
		return
	}
	form := r.PostForm
	if form.Get("client_id") == "" {
		writeError(w, http.StatusBadRequest, "invalid_request", "client_id is required.")
		return
	}
	resource := form.Get("resource")
	if resource != "" || len(form["resource"]) > 0 {
		if resource = s.resource(resource); resource == "" {
			writeError(w, http.StatusBadRequest, "invalid_target", auth.ErrOtherTarget.Message)
			return
		}
	}
	var tokens auth.Tokens
	var err error
	switch form.Get("grant_type") {
	case "authorization_code":
		tokens, err = s.Accounts.ExchangeCode(r.Context(), auth.CodeExchange{
			Code: form.Get("code"), ClientID: form.Get("client_id"), RedirectURI: form.Get("redirect_uri"), Verifier: form.Get("code_verifier"), Resource: resource,
		})
	case "refresh_token":
		tokens, err = s.Accounts.RefreshTokens(r.Context(), form.Get("refresh_token"), form.Get("client_id"), resource)
	default:
		writeError(w, http.StatusBadRequest, "unsupported_grant_type", "grant_type must be authorization_code or refresh_token.")
		return
	}
	switch {
	case errors.Is(err, auth.ErrOtherTarget):
		writeError(w, http.StatusBadRequest, "invalid_target", auth.ErrOtherTarget.Message)
	case errors.Is(err, auth.ErrInvalidGrant) && s.expired(r):
		// Unlike invalid_grant, it makes clients register again.
		writeError(w, http.StatusUnauthorized, "invalid_client", errUnused.Message)
	case errors.Is(err, auth.ErrInvalidGrant):
		writeError(w, http.StatusBadRequest, "invalid_grant", auth.ErrInvalidGrant.Message)
	case err != nil:
		s.fail(w, r, err)
	default:
		writeJSON(w, http.StatusOK, map[string]any{
			"access_token": tokens.Access, "token_type": "Bearer", "expires_in": int(auth.AccessLifetime.Seconds()), "refresh_token": tokens.Refresh, "scope": scopeOf(tokens.PrivateQueries),
		})
	}
}

// expired reports whether the registration of the client has expired.
func (s *Server) expired(r *http.Request) bool {
	id := r.PostForm.Get("client_id")
	if !strings.HasPrefix(id, registeredPrefix) {
		return false
	}
	_, err := s.registeredClient(r.Context(), id)
	return errors.Is(err, errUnused) || errors.Is(err, errClient)
}

// serveRevocation disconnects an application (RFC 7009).
func (s *Server) serveRevocation(w http.ResponseWriter, r *http.Request) {
	if !s.readForm(w, r) {
		return
	}
	token, client := r.PostForm.Get("token"), r.PostForm.Get("client_id")
	if token == "" || client == "" {
		writeError(w, http.StatusBadRequest, "invalid_request", "token and client_id are required.")
		return
	}
	account, err := s.Accounts.RevokeTokens(r.Context(), token, client)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if account > 0 {
		s.Keyring.ForgetAccount(account)
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
}

// readForm reads the form of a request and reports whether it is valid. Otherwise, it has
// sent an error.
func (s *Server) readForm(w http.ResponseWriter, r *http.Request) bool {
	if !allowPost(w, r) {
		return false
	}
	if !s.tokens.Take(s.address(r), 1) {
		w.Header().Set("Retry-After", "60")
		writeError(w, http.StatusTooManyRequests, "temporarily_unavailable", "Too many requests from your network. Try again in a minute.")
		return false
	}
	if r.Header.Get("Authorization") != "" {
		w.Header().Set("WWW-Authenticate", "Basic")
		writeError(w, http.StatusUnauthorized, "invalid_client", "Clients have no secret here: send client_id in the form, without an Authorization header.")
		return false
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil || r.URL.RawQuery != "" || len(r.PostForm) == 0 {
		writeError(w, http.StatusBadRequest, "invalid_request", "Send all parameters as a form in the body, and none in the URL, which ends up in logs.")
		return false
	}
	for name, values := range r.PostForm {
		if len(values) > 1 {
			code := "invalid_request"
			if name == "resource" {
				code = "invalid_target"
			}
			writeError(w, http.StatusBadRequest, code, name+" must not be sent twice.")
			return false
		}
	}
	return true
}

func allowPost(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodPost {
		return true
	}
	w.Header().Set("Allow", "POST")
	writeError(w, http.StatusMethodNotAllowed, "invalid_request", "Send the request with POST.")
	return false
}

// fail reports an error of the server, whose cause is only logged.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() == nil {
		s.Log.ErrorContext(r.Context(), "OAuth request failed", "path", r.URL.Path, "cause", err, "request_id", problem.RequestID(r.Context()))
	}
	w.Header().Set("Retry-After", "60")
	writeError(w, http.StatusServiceUnavailable, "temporarily_unavailable", "Tokens cannot be issued at the moment. Try again in a minute.")
}

// writeError sends an error in the format of OAuth.
func writeError(w http.ResponseWriter, status int, code, description string) {
	writeJSON(w, status, map[string]any{"error": code, "error_description": description})
}

func writeJSON(w http.ResponseWriter, status int, content map[string]any) {
	body, err := json.Marshal(content)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
