package browser

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/chromedp"

	"palmares/internal/dev/testkit"
)

// Screenshot keeps a picture of the whole page, below TEST_OUTPUT or else in
// the repository's test-output.
func (p *Page) Screenshot(name string) {
	p.t.Helper()
	picture, err := p.picture()
	if err != nil {
		p.fatal("take a screenshot", err)
	}
	if _, err := p.keep(filepath.Join("screenshots", name+".png"), picture); err != nil {
		p.t.Fatal(err)
	}
}

func (p *Page) picture() (picture []byte, err error) {
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	err = chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) (err error) {
		picture, err = chromedp.FullScreenshot(100)(ctx, t)
		return err
	}))
	return picture, err
}

// keep writes a file below TEST_OUTPUT or else the repository's test-output.
func (p *Page) keep(name string, data []byte) (file string, err error) {
	file = filepath.Join(cmp.Or(os.Getenv("TEST_OUTPUT"), filepath.Join(testkit.Root(p.t), "test-output")), name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	return file, os.WriteFile(file, data, 0o644)
}

// failure names a file about a page of a test that failed.
func (p *Page) failure(suffix string) string {
	name := strings.NewReplacer("/", "-", " ", "_").Replace(p.t.Name())
	return filepath.Join("failures", fmt.Sprintf("%s-%s%s", name, p.id, suffix))
}

// keepPicture leaves a picture of the page as it was when its test failed.
func (p *Page) keepPicture() {
	picture, err := p.picture()
	if err == nil {
		var file string
		if file, err = p.keep(p.failure(".png"), picture); err == nil {
			p.t.Logf("the page looked like this: %s", file)
		}
	}
	if err != nil {
		p.t.Logf("no screenshot: %v", err)
	}
}

// keepConsole leaves what was wrong with the page, beside its picture.
func (p *Page) keepConsole(complaints []string) {
	text := strings.Join(complaints, "\n") + "\n"
	if file, err := p.keep(p.failure(".txt"), []byte(text)); err != nil {
		p.t.Logf("the console log is not kept: %v", err)
	} else {
		p.t.Logf("the page's console log: %s", file)
	}
}
