package site

import (
	"bytes"
	"testing"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/demo"
	"palmares/internal/dev/testkit"
	"palmares/internal/dev/testkit/browser"
)

// measures are functions for a page: where something begins, and how far the
// things of one row are out of line.
const measures = `
const all = selector => [...document.querySelectorAll(selector)];
const box = element => element.getBoundingClientRect();
const spread = numbers => Math.max(...numbers) - Math.min(...numbers);
const textLeft = element => { const range = document.createRange(); range.selectNodeContents(element); return range.getBoundingClientRect().left };
const menu = all(".bar a"), firstOfRows = menu.filter((link, i) => i == 0 || box(link).left < box(menu[i-1]).left);
`

// What belongs together stands on one line, at every width.
func TestThingsAreLevel(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	if _, err := feed.Import(t.Context(), s, bytes.NewReader(demo.Catalog), feed.Options{}); err != nil {
		t.Fatal(err)
	}
	_, base := visited(t, s)
	chrome := browser.Start(t)
	for _, width := range []int{360, 768, 1440} {
		p := chrome.Open(t, browser.Look{Width: width}, base+"/tools")
		atMost := func(what, expression string, most float64) {
			t.Helper()
			var got float64
			if p.Eval("(() => {"+measures+"return "+expression+"})()", &got); got > most {
				t.Errorf("%s at %d: %s is %v, more than %v", p.URL(), width, what, got, most)
			}
		}
		atMost("the difference of the fields' heights", `spread(all(".filter input, .filter select, .filter button").map(field => box(field).height))`, 0.1)
		atMost("the indentation of the menu", `spread([...firstOfRows, document.querySelector("h1")].map(textLeft))`, 0.5)
		atMost("what a finger misses of a link", `32 - Math.min(...menu.map(link => box(link).height))`, 0)
		atMost("the header", `box(document.querySelector("header")).height`, map[int]float64{360: 120, 768: 90, 1440: 70}[width])
		atMost("a row of the menu with one word", `firstOfRows.length > 1 && firstOfRows.at(-1) === menu.at(-1) ? 1 : 0`, 0)

		p.Go(base + "/")
		atMost("the histogram", `box(document.querySelector(".histogram")).width`, 450)

		p.Go(base + "/tools/plume")
		if width > 360 { // where they stand in one row
			atMost("the difference of the figures", `spread(all(".figures dd").map(figure => box(figure).top))`, 0.5)
			atMost("the difference of their names", `spread(all(".figures dt").map(name => box(name).top))`, 0.5)

			p.Go(base + "/comparatifs/plume-vs-ecritoire-cie")
			atMost("the difference of both cards' figures", `spread(all(".sides .figures").map(figures => box(figures).top))`, 0.5)
		}

		p.Go(base + "/cimetiere")
		atMost("the height of a mark", `Math.max(...all(".mark").map(mark => box(mark).height))`, 30)
	}
}
