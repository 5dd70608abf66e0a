package page

import (
	"strings"
	"testing"

	"palmares/internal/dev/check"
)

func TestMarkdown(t *testing.T) {
	content := Content{Base: "https://palmares.example", Credit: "Source : palmares"}
	page := `<html><body><nav>Menu</nav><main><h1>Plume</h1><form><input></form><p>Un <a href="/tools/x">lien</a>.</p>
		<dl><div><dt>Score</dt><dd>8.1</dd></div><dt>Price</dt><dd>19 € <a href="/explorer?query=x">query</a></dd></dl>
		<table><caption>All</caption><thead><tr><th>Tool</th><th>Score</th></tr></thead>
		<tbody><tr><th><a href="/tools/x">X</a><p>Tagline</p><p class="narrow-only">19 €</p></th><td>7 <svg><title>chart</title></svg></td></tr></tbody></table>
		<details><summary>Show as table</summary><p>7.9 <span class="visually-hidden">to</span></p></details><button>Copy</button></main><footer>Foot</footer></body></html>`
	text, err := content.markdown([]byte(page))
	check.OK(t, err)
	want := `# Plume

Un [lien](https://palmares.example/tools/x).

- Score: 8.1
- Price: 19 €

| Tool | Score |
|---|---|
| [X](https://palmares.example/tools/x) · Tagline | 7 |

7.9

Source: palmares
`
	check.Equal(t, strings.TrimSpace(string(text)), strings.TrimSpace(want))
	if _, err := content.markdown([]byte("<p>no main</p>")); err == nil {
		t.Error("got no error for a page without main, want one")
	}
}
