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
	if p.look.NoScript {
		p.t.Fatal("axe needs JavaScript, which is disabled")
	}
	dir := filepath.Join(testkit.Root(p.t), "internal", "dev", "testkit", "browser", "axe")
	testkit.NPM(p.t, dir)
	source, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	testkit.Check(p.t, err)
	result := do(p, "run axe", func(ctx context.Context, t *chromedp.Target) ([]byte, error) {
		// The page's scripts and content security policy do not affect this world.
		world, err := cdp.Call(ctx, t, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: p.watch.frame, WorldName: "axe"})
		if err != nil {
			return nil, err
		}
		return p.evaluateIn(world.ExecutionContextID, string(source)+`
		; axe.run(document, {
			runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
			resultTypes: ["violations"],
			iframes: false,
		}).then(result => result.violations.map(({id, help, nodes}) => ({id, help, nodes: nodes.map(({html}) => ({html}))})))`)(ctx, t)
	})
	var violations []struct {
		ID, Help string
		Nodes    []struct{ HTML string }
	}
	testkit.Check(p.t, json.Unmarshal(result, &violations))
	for _, v := range violations {
		var nodes strings.Builder
		for _, node := range v.Nodes {
			nodes.WriteString("\n\t" + node.HTML)
		}
		p.t.Errorf("%s: %s: %s%s", p.URL(), v.ID, v.Help, &nodes)
	}
}

// Screenshot saves a screenshot of the whole page in the directory TEST_OUTPUT,
// by default test-output in the repository.
func (p *Page) Screenshot(name string) {
	p.t.Helper()
	p.save("screenshots", name+".png", do(p, "take a screenshot", chromedp.FullScreenshot(100)))
}

func (p *Page) save(dir, name string, data []byte) (file string) {
	p.t.Helper()
	dir = filepath.Join(cmp.Or(os.Getenv("TEST_OUTPUT"), filepath.Join(testkit.Root(p.t), "test-output")), dir)
	testkit.Check(p.t, os.MkdirAll(dir, 0o755))
	file = filepath.Join(dir, name)
	testkit.Check(p.t, os.WriteFile(file, data, 0o644))
	return file
}

// saveFailure saves something about a failed test, and logs where.
func (p *Page) saveFailure(what, suffix string, data []byte) {
	name := strings.NewReplacer("/", "-", " ", "_").Replace(p.t.Name())
	p.t.Logf("%s: %s", what, p.save("failures", name+"-"+string(p.watch.frame)+suffix, data))
}
