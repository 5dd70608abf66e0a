package data_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"syscall"
	"testing"

	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/blackbox"
)

// Entity tags depend on a secret in the database: they are the same on all
// servers and after restarts, differ between databases, and cannot be computed
// from the body.
func TestEntityTags(t *testing.T) {
	t.Parallel()
	const path = "/api/v1/tools?limit=3"
	testkit.Each(t, func(t *testing.T, cfg store.Config) {
		tag := func(s *blackbox.Server) (string, string) {
			response := s.Call(t, http.MethodGet, path, "")
			return response.Header.Get("ETag"), blackbox.ReadAll(t, response.Body)
		}
		first := blackbox.Serve(t, cfg, "--demo")
		want, body := tag(first)
		if got, _ := tag(blackbox.Serve(t, cfg)); got != want {
			t.Errorf("another server: got %s, want %s", got, want)
		}
		_ = first.Cmd.Process.Signal(syscall.SIGTERM)
		first.Ends(t)
		again := blackbox.Serve(t, cfg)
		if got, _ := tag(again); got != want {
			t.Errorf("after a restart: got %s, want %s", got, want)
		}
		if got, _ := tag(blackbox.Serve(t, testkit.SQLite(t), "--demo")); got == want || got == "" {
			t.Errorf("another database: got %s, want a different tag", got)
		}
		sum := sha256.Sum256([]byte(body))
		for _, guess := range []string{base64.RawURLEncoding.EncodeToString(sum[:15]), base64.RawURLEncoding.EncodeToString(sum[:])} {
			if got := again.Call(t, http.MethodGet, path, "", "If-None-Match", `"`+guess+`"`); got.StatusCode != http.StatusOK {
				t.Errorf("a guessed tag: got %d, want 200", got.StatusCode)
			}
		}
		if got := again.Call(t, http.MethodGet, path, "", "If-None-Match", want); got.StatusCode != http.StatusNotModified {
			t.Errorf("the tag: got %d, want 304", got.StatusCode)
		}
	})
}
