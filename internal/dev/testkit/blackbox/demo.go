package blackbox

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	catalog "palmares/internal/catalog/feed/demo"
	"palmares/internal/core/store"
)

// demo is the files of an embedded database with the demo catalog.
var demo = sync.OnceValues(func() (files map[string][]byte, err error) {
	dir, err := os.MkdirTemp("", "palmares-demo-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path, err := buildShipped()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "import", "-")
	cmd.Dir, cmd.Env, cmd.Stdin = dir, append(os.Environ(), "DATABASE_URL=", "PALMARES_DATA_DIR="+dir), bytes.NewReader(catalog.Catalog)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("import the demo catalog: %w\n%s", err, out)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files = map[string][]byte{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			return nil, err
		}
	}
	return files, nil
})

// Demo is a new embedded database with the demo catalog. Migrations and the
// import take longer than most tests, so they run once, without the race
// detector, and each test begins with a copy.
func Demo(t testing.TB) store.Config {
	t.Helper()
	files, err := demo()
	if err != nil {
		t.Fatal(err)
	}
	cfg := store.Config{DataDir: t.TempDir()}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(cfg.DataDir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cfg
}
