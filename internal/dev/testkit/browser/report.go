package browser

import (
	"cmp"
	"context"
	"encoding/json"
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
	image, err := p.try(chromedp.FullScreenshot(100))
	if err != nil {
		p.fatal("take a screenshot", err)
	}
	if _, err := p.save("screenshots", name+".png", image); err != nil {
		p.t.Fatal(err)
	}
}

func (p *Page) save(dir, name string, data []byte) (file string, err error) {
	dir = filepath.Join(cmp.Or(os.Getenv("TEST_OUTPUT"), filepath.Join(testkit.Root(p.t), "test-output")), dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file = filepath.Join(dir, name)
	return file, os.WriteFile(file, data, 0o644)
}

// saveFailure saves something about a failed test, and logs where.
func (p *Page) saveFailure(what, suffix string, data []byte) {
	name := strings.NewReplacer("/", "-", " ", "_").Replace(p.t.Name())
	file, err := p.save("failures", name+"-"+p.id+suffix, data)
	if err != nil {
		p.t.Logf("no %s: %v", what, err)
		return
	}
	p.t.Logf("%s: %s", what, file)
}
