// Package panels_test compares the explorer's dashboard panels with statements in SQL
// on the files of the same release: see sql_test.go.
package panels_test

import "palmares/internal/catalog/feed/feedtest"

// dates are the feed dates. Two are equal, and one is older than the one before it.
var dates = []string{"2026-01-30", "2026-03-02", "2026-03-02", "2026-04-30", "2026-04-11", "2026-07-01", "2026-10-05", "2026-11-14"}

// randomFeeds returns the feeds of eight releases.
func randomFeeds(seed uint64) (feeds [][]byte) {
	catalog := feedtest.NewRandom(seed, 40)
	catalog.Simple = true // the statements order by slug, and compare releases
	for i, date := range dates {
		catalog.Date = date
		if i == 0 {
			catalog.Change(80)
		}
		catalog.Change(40)
		feeds = append(feeds, catalog.Feed())
	}
	return feeds
}
