// Package feed is the way in and out of the catalog: it reads a feed and
// checks every rule of it, imports it in one transaction, and writes the
// catalog out as a feed again. Who may publish, and how readers see it, is
// decided elsewhere.
//
// An import reads the feed more than once, so that a large one never has to
// fit in memory. The first reading checks everything and keeps a few bytes
// for each record (snapshot.go); that is compared with the catalog (catalog.go);
// later readings fetch the few records that changed (import.go).
package feed
