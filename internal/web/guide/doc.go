// Package guide serves short guides that are written by hand: as pages, as
// Markdown, and as the texts that language models read first. Every snippet in
// them is run by a test against the real server. What the catalog holds is no
// business of this room.
package guide
