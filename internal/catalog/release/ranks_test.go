package release_test

import (
	"testing"

	"palmares/ent"
	"palmares/internal/catalog/release"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// naiveRank counts the active tools with a higher score, and all with a score.
func naiveRank(rows []*ent.Tool, slug string, inCategory bool) release.Rank {
	var own *ent.Tool
	for _, row := range rows {
		if row.ID == slug && row.RetiredAt == "" && row.Score != nil {
			own = row
		}
	}
	if own == nil {
		return release.Rank{}
	}
	rank := release.Rank{Position: 1}
	for _, row := range rows {
		if row.RetiredAt != "" || row.Score == nil || inCategory && row.CategorySlug != own.CategorySlug {
			continue
		}
		rank.Of++
		if *row.Score > *own.Score {
			rank.Position++
		}
	}
	return rank
}

func TestRanksMatchScan(t *testing.T) {
	s := testkit.Open(t, testkit.SQLite(t))
	c := growing(t, s)
	newest := load(t, c)
	for _, info := range newest.All {
		r := newest
		if info != newest.Info {
			r = c.Earlier(newest, info)
		}
		now, before := scanRelease(t, s, info.ID).tools, []*ent.Tool(nil)
		if info.ID > r.HistoryFrom() {
			before = scanRelease(t, s, info.ID-1).tools
		}
		positions := map[int]bool{}
		ranked := 0
		for _, tool := range r.Tools {
			for _, inCategory := range []bool{false, true} {
				check.Equal(t, r.Rank(tool, inCategory), naiveRank(now, tool.Slug, inCategory), "rank of %s", tool.Slug)
				check.Equal(t, r.PreviousRank(tool, inCategory), naiveRank(before, tool.Slug, inCategory), "previous rank of %s", tool.Slug)
			}
			if rank := r.Rank(tool, false); rank.Position > 0 {
				positions[rank.Position] = true
				ranked++
			}
		}
		if len(positions) == ranked {
			t.Errorf("release %d: got no tools with the same rank, want some", info.ID)
		}
	}
}
