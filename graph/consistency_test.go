package graph_test

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/catalog/feed/synth"
	"palmares/internal/catalog/publish"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
)

// Each response comes from one release, however fast new ones are published.
func TestOperationsReadOneRelease(t *testing.T) {
	var feeds [2][]byte
	for i := range feeds {
		feeds[i] = syntheticFeed(t, synth.Options{Tools: 40 + 20*i, Seed: 9, Revision: i})
	}
	const query = `{feed {updatedAt} stats {toolsTotal} tools(limit: 200, filter: {priceMax: 100000}) {items {slug} meta {total}} again: tools(limit: 200, sort: name_asc) {items {slug}} toolGroups(by: tier) {count}}`
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		feedtest.Publish(t, s, feeds[0])
		e := newExecutor(s)
		ctx, stop := context.WithCancel(t.Context())
		var releases atomic.Int64
		var all sync.WaitGroup
		defer all.Wait()
		defer stop()
		all.Go(func() {
			for i := 1; ctx.Err() == nil; i++ {
				if _, err := publish.Import(t.Context(), s, feed.NewLines(bytes.NewReader(feeds[i%2])), publish.Options{Force: true}); err != nil {
					t.Error(err)
					return
				}
				releases.Add(1)
			}
		})
		for responses := 0; responses < 20 || releases.Load() < 5; responses++ {
			if t.Failed() {
				return // imports have ended
			}
			a := decode[struct {
				Stats struct{ ToolsTotal int }
				Tools struct {
					Items []slugItem
					Meta  struct{ Total int }
				}
				Again      struct{ Items []slugItem }
				ToolGroups []struct{ Count int }
			}](t, mustExecute(t, e, query))
			grouped := 0
			for _, g := range a.ToolGroups {
				grouped += g.Count
			}
			n := a.Stats.ToolsTotal
			if got := []int{len(a.Tools.Items), a.Tools.Meta.Total, len(a.Again.Items), grouped}; got[0] != n || got[1] != n || got[2] != n || got[3] != n {
				t.Fatalf("got %v tools, want %d everywhere", got, n)
			}
		}
	})
}
