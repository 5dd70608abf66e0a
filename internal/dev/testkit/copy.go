package testkit

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palmares/internal/core/store"
)

// Copy is a new database with what another one holds, which nobody may have
// open meanwhile. It goes with the test.
func Copy(t testing.TB, of store.Config) store.Config {
	t.Helper()
	if of.DatabaseURL != "" {
		u, err := url.Parse(of.DatabaseURL)
		if err != nil {
			t.Fatal(err)
		}
		return postgres(t, strings.TrimPrefix(u.Path, "/"))
	}
	cfg := SQLite(t)
	entries, err := os.ReadDir(of.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(of.DataDir, entry.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(cfg.DataDir, entry.Name()), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return cfg
}
