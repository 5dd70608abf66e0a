package chart

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"palmares/internal/core/cache"
	"palmares/internal/core/lang"
)

// Small is the extension of a file for lists of charts: what it shows stands beside it.
const Small = "small.svg"

// ContentTypes are the types of files by their extension.
var ContentTypes = map[string]string{"svg": "image/svg+xml", "png": "image/png"}

// File draws the chart as a file with its title, notes and a credit line.
func (c *Chart) File(ctx context.Context, extension, credit string) ([]byte, error) {
	const titleSize, noteSize = 17.0, 11.0
	margin, width, notes, title := 24.0, wide, append(c.Notes[:len(c.Notes):len(c.Notes)], credit), wrap(c.Title, titleSize, wide)
	part := ""
	if extension == Small {
		margin, width, notes, title = 6, half, nil, nil
		c, part = c.first()
	}
	d := &drawing{width: width, isSmall: extension == Small}
	c.draw(d)
	d.text("soft", "end", noteSize, width, -noteSize/3, part) // in the margin
	bottom := d.height
	for _, note := range notes {
		for _, line := range wrap(note, noteSize, width) {
			bottom += noteSize * 1.5
			d.text("soft", "", noteSize, 0, bottom+6, line)
		}
	}
	d.left, d.top, d.width = -margin, -margin-titleSize*1.3*float64(len(title))-10, width+2*margin
	for i, line := range title {
		d.heading(titleSize, 0, d.top+margin+titleSize*(1+1.3*float64(i)), line)
	}
	d.height = bottom - d.top + margin
	if extension == "png" {
		return d.png(ctx)
	}
	return []byte(d.svg(fmt.Sprintf(`xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" role="img" font-family="sans-serif"`, d.width, round(d.height)), true)), nil
}

// first returns the start of what a chart shows, which has room in a small file, and how
// much of it that is, such as "6/10", or "" for all.
func (c *Chart) first() (start *Chart, part string) {
	const bars, tiles, plots = 6, 2, 1
	shown, all := 0, 0
	switch content := c.Content.(type) {
	case Bars:
		shown, all = min(len(content), bars), len(content)
		start = &Chart{Content: content[:shown]}
	case Tiles:
		shown, all = min(len(content), tiles), len(content)
		start = &Chart{Content: content[:shown]}
	case Plots:
		shown, all = plots, len(content)
		start = &Chart{Content: content[:shown]}
	default:
		return c, ""
	}
	if shown < all {
		part = fmt.Sprintf("%d/%d", shown, all)
	}
	return start, part
}

// Entry draws the chart as a file that is cached like a page.
func (c *Chart) Entry(ctx context.Context, l lang.Language, extension, credit, caching string) (*cache.Entry, error) {
	if l != lang.French {
		credit = strings.Replace(credit, " : ", ": ", 1)
	}
	body, err := c.File(ctx, extension, credit)
	return cache.NewEntry(body, http.Header{"Content-Type": {cmp.Or(ContentTypes[extension], ContentTypes["svg"])}, "Cache-Control": {caching}, "Vary": {"Accept-Encoding"}}), err
}
