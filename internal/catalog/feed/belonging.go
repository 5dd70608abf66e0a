package feed

// The categories that hear of a change: where a tool is, and where it was.

// categoryOf is where a tool belongs: as the feed says or, if it has left that,
// as it was.
func (p *publication) categoryOf(slug string) string {
	if line := p.snap.tools[slug]; line != nil {
		return line.category
	}
	return p.categoryBefore(slug)
}

// categoryBefore is where a tool was before this import; empty for a new one.
func (p *publication) categoryBefore(slug string) string { return p.stored.tools[slug].category }

// movedFrom is where a tool was, if that is elsewhere.
func (p *publication) movedFrom(slug string) string {
	if was := p.categoryBefore(slug); was != p.categoryOf(slug) {
		return was
	}
	return ""
}
