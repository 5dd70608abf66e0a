package browser

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// Screenshot keeps a picture of the whole page, below TEST_OUTPUT or else in
// the repository's test-output.
func (p *Page) Screenshot(name string) {
	p.t.Helper()
	var picture []byte
	p.do("take a screenshot", func(ctx context.Context, t *chromedp.Target) (err error) {
		picture, err = chromedp.FullScreenshot(100)(ctx, t)
		return err
	})
	file := filepath.Join(cmp.Or(os.Getenv("TEST_OUTPUT"), filepath.Join(root(p.t), "test-output")), "screenshots", name+".png")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, picture, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// root is the repository's: tests run in the folder of their package.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod here or above")
		}
		dir = parent
	}
}
