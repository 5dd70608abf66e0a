// Package demo has the catalog that a new server starts with. Every tool in it
// is fictional.
package demo

import _ "embed"

// Catalog is the demo catalog as a feed.
//
//go:embed catalog.ndjson
var Catalog []byte
