package site

import "html/template"

// icons are drawings on a grid of 24 by 24, by the slug of a category. The style
// sheet draws their lines.
var icons = map[string]template.HTML{
	"agents":         `<circle cx="12" cy="12" r="3"/><circle cx="5" cy="5" r="2"/><circle cx="19" cy="5" r="2"/><circle cx="12" cy="20.5" r="2"/><path d="m6.5 6.5 3.2 3.2m7.8-3.2-3.2 3.2M12 15v3.5"/>`,
	"automatisation": `<path d="M4 11a8 8 0 0 1 14-4.6L20 8.5M20 4v4.5h-4.5M20 13a8 8 0 0 1-14 4.6L4 15.5M4 20v-4.5h4.5"/>`,
	"chat":           `<path d="M4 5h16v11h-9l-5 4v-4H4zM8 9.5h8M8 12.5h5"/>`,
	"code":           `<path d="m8 7-5 5 5 5m8-10 5 5-5 5M13.5 5l-3 14"/>`,
	"image":          `<path d="M3 5h18v14H3zm0 11 5-5 4 4 3.5-3.5L21 17"/><circle cx="15.5" cy="9" r="1.5"/>`,
	"recherche":      `<circle cx="10.5" cy="10.5" r="6.5"/><path d="m15.5 15.5 5.5 5.5"/>`,
	"redaction":      `<path d="m4 20 1-5L16 4l4 4L9 19zM13.5 6.5l4 4M13 20h7"/>`,
	"video":          `<path d="M3 5h18v14H3zm7 3.5v7l5.5-3.5z"/>`,
	"voix":           `<path d="M4 10v4m4-7v10m4-13v16m4-12v8m4-5v2"/>`,
}

// otherIcon is that of any other category.
const otherIcon template.HTML = `<path d="M4 4h6.5v6.5H4zm9.5 0H20v6.5h-6.5zM4 13.5h6.5V20H4zm9.5 0H20V20h-6.5z"/>`

// icon returns the icon of a category. It only decorates the name beside it.
func icon(category string) template.HTML {
	drawing, ok := icons[category]
	if !ok {
		drawing = otherIcon
	}
	return `<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">` + drawing + `</svg>`
}
