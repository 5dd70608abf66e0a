// Package demo holds the catalog that a newcomer's first server is filled
// with. Every tool in it is invented: no score is claimed for a product that
// exists.
package demo

import _ "embed"

// Catalog is the demo catalog as a feed.
//
//go:embed catalog.ndjson
var Catalog []byte
