package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"palmares/internal/dev/testkit"
)

// Axe fails the test for each accessibility rule that the page violates.
func (p *Page) Axe() {
	p.t.Helper()
	for _, v := range p.violations() {
		var nodes strings.Builder
		for _, node := range v.Nodes {
			nodes.WriteString("\n\t" + node.HTML)
		}
		p.t.Errorf("%s: %s: %s%s", p.URL(), v.ID, v.Help, &nodes)
	}
}

// violation is a violated rule and the elements that violate it.
type violation struct {
	ID, Help string
	Nodes    []struct{ HTML string }
}

func (p *Page) violations() (found []violation) {
	p.t.Helper()
	if p.look.NoScript {
		p.t.Fatal("axe needs JavaScript, which is disabled")
	}
	dir := filepath.Join(testkit.Root(p.t), "internal", "dev", "testkit", "browser", "axe")
	testkit.NPM(p.t, dir)
	source, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.do("run axe", func(ctx context.Context, t *chromedp.Target) error {
		// The page's scripts and content security policy do not affect this world.
		world, err := cdp.Call(ctx, t, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: p.watch.frame, WorldName: "axe"})
		if err != nil {
			return err
		}
		if _, err := p.evaluateIn(world.ExecutionContextID, string(source)+"; 0")(ctx, t); err != nil {
			return err
		}
		result, err := p.evaluateIn(world.ExecutionContextID, `axe.run(document, {
			runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
			resultTypes: ["violations"],
			iframes: false,
		}).then(result => result.violations.map(({id, help, nodes}) => ({id, help, nodes: nodes.map(({html}) => ({html}))})))`)(ctx, t)
		if err != nil {
			return err
		}
		return json.Unmarshal(result, &found)
	})
	return found
}

// Screenshot saves a screenshot of the whole page in the directory TEST_OUTPUT,
// by default test-output in the repository.
func (p *Page) Screenshot(name string) {
	p.t.Helper()
	image, err := p.screenshot()
	if err != nil {
		p.fatal("take a screenshot", err)
	}
	if _, err := p.save(filepath.Join("screenshots", name+".png"), image); err != nil {
		p.t.Fatal(err)
	}
}

func (p *Page) screenshot() (image []byte, err error) {
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	err = chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) (err error) {
		image, err = chromedp.FullScreenshot(100)(ctx, t)
		return err
	}))
	return image, err
}

func (p *Page) save(name string, data []byte) (file string, err error) {
	file = filepath.Join(cmp.Or(os.Getenv("TEST_OUTPUT"), filepath.Join(testkit.Root(p.t), "test-output")), name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	return file, os.WriteFile(file, data, 0o644)
}

// failureFile names a file about a failed test.
func (p *Page) failureFile(suffix string) string {
	name := strings.NewReplacer("/", "-", " ", "_").Replace(p.t.Name())
	return filepath.Join("failures", fmt.Sprintf("%s-%s%s", name, p.id, suffix))
}

// saveFailure saves a screenshot of a failed test.
func (p *Page) saveFailure() {
	image, err := p.screenshot()
	if err == nil {
		var file string
		if file, err = p.save(p.failureFile(".png"), image); err == nil {
			p.t.Logf("screenshot: %s", file)
		}
	}
	if err != nil {
		p.t.Logf("no screenshot: %v", err)
	}
}

// saveConsole saves the complaints of the browser next to the screenshot.
func (p *Page) saveConsole(complaints []string) {
	text := strings.Join(complaints, "\n") + "\n"
	if file, err := p.save(p.failureFile(".txt"), []byte(text)); err != nil {
		p.t.Logf("no console log: %v", err)
	} else {
		p.t.Logf("console log: %s", file)
	}
}
