package browser

import (
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

// Axe fails the test for each rule of accessibility that the page breaks.
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

// violation is a rule that is broken, and where.
type violation struct {
	ID, Help string
	Nodes    []struct{ HTML string }
}

func (p *Page) violations() (found []violation) {
	p.t.Helper()
	if p.look.NoScript {
		p.t.Fatal("axe is a script, and the page runs none")
	}
	dir := filepath.Join(testkit.Root(p.t), "internal", "dev", "testkit", "browser", "axe")
	testkit.NPM(p.t, dir)
	source, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.do("run axe", func(ctx context.Context, t *chromedp.Target) error {
		// Neither the page's scripts nor its policy reach into this world.
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
