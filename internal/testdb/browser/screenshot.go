package browser

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"github.com/chromedp/chromedp"

	"palmares/internal/testdb"
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
	file := filepath.Join(cmp.Or(os.Getenv("TEST_OUTPUT"), filepath.Join(testdb.Root(p.t), "test-output")), "screenshots", name+".png")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, picture, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
