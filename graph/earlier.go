package graph

import (
	lru "container/list"
	"context"
	"slices"
	"sync"
	"unsafe"

	"palmares/ent"
	"palmares/graph/model"
	"palmares/internal/core/store"
)

// earlierShare limits the indexes of earlier releases to this fraction of the
// memory budget: a quarter.
const earlierShare = 4

// earlierIndexes holds the indexes of earlier releases. When they take more than
// the limit, the least recently used are dropped.
type earlierIndexes struct {
	limit int64

	mu      sync.Mutex
	total   int64
	entries map[int]*lru.Element // by the number of the release
	used    lru.List             // the most recently used first
}

// earlierEntry is an index with its part of the total, in bytes.
type earlierEntry struct {
	*catalogIndex
	charged int64
}

func newEarlierIndexes(limit int64) *earlierIndexes {
	return &earlierIndexes{limit: limit, entries: map[int]*lru.Element{}}
}

// get returns the index of a release; nil if it is not in memory.
func (s *earlierIndexes) get(release *ent.Release) *catalogIndex {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.entries[release.ID]
	if found == nil || !found.Value.(*earlierEntry).isOf(release) {
		return nil
	}
	s.used.MoveToFront(found)
	return found.Value.(*earlierEntry).catalogIndex
}

// put adds an index and replaces any other with the same release number.
func (s *earlierIndexes) put(x *catalogIndex) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.entries[x.release.ID]; known != nil {
		s.drop(known)
	}
	s.entries[x.release.ID] = s.used.PushFront(&earlierEntry{catalogIndex: x})
	s.charge(s.entries[x.release.ID])
	s.trim()
}

// charge counts what was added to an index since it was last charged. It reports
// whether that changed the total.
func (s *earlierIndexes) charge(element *lru.Element) bool {
	entry := element.Value.(*earlierEntry)
	grown := entry.bytes.Load() + entry.added.Load() - entry.charged
	entry.charged += grown
	s.total += grown
	return grown != 0
}

// trim drops the least recently used indexes until the rest fit the limit.
func (s *earlierIndexes) trim() {
	for s.total > s.limit && s.used.Len() > 0 {
		s.drop(s.used.Back())
	}
}

func (s *earlierIndexes) drop(element *lru.Element) {
	entry := s.used.Remove(element).(*earlierEntry)
	s.total -= entry.charged
	delete(s.entries, entry.release.ID)
}

// rebase recalculates the sizes of the indexes after a change of the newest release,
// with which they share tools.
func (s *earlierIndexes) rebase(newest *catalogIndex) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for element := s.used.Front(); element != nil; element = element.Next() {
		x := element.Value.(*earlierEntry).catalogIndex
		x.bytes.Add(x.unshared(newest) - x.bytes.Load())
		s.charge(element)
	}
	s.trim()
}

// weight returns the memory that the indexes take, in bytes.
func (s *earlierIndexes) weight() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// chargeEarlier charges what an operation has added to an index.
func (e *Executor) chargeEarlier(x *catalogIndex) {
	e.earlier.mu.Lock()
	element := e.earlier.entries[x.release.ID]
	changed := element != nil && element.Value.(*earlierEntry).catalogIndex == x && e.earlier.charge(element)
	e.earlier.trim()
	e.earlier.mu.Unlock()
	if changed {
		e.reserve()
	}
}

// earlierIndex returns the index of a release before the current one.
func (e *Executor) earlierIndex(ctx context.Context, release *ent.Release) (*catalogIndex, error) {
	if known := e.earlier.get(release); known != nil {
		return known, nil
	}
	if !store.InTransaction(ctx) {
		return nil, store.ErrNeedsTransaction
	}
	unlock, err := e.indexingEarlier.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if known := e.earlier.get(release); known != nil {
		return known, nil
	}
	newest := e.index.Load()
	x, err := e.deriveIndex(ctx, release, newest)
	if err != nil {
		return nil, err
	}
	x.bytes.Store(x.unshared(newest))
	x.sortWhenUsed(e.index.Load)
	e.earlier.put(x)
	e.reserve()
	return x, nil
}

// deriveIndex builds the index of an earlier release from the newest index and the
// rows that differ. If the database no longer matches the newest index, because of
// an import, it reads the whole release.
func (e *Executor) deriveIndex(ctx context.Context, release *ent.Release, newest *catalogIndex) (*catalogIndex, error) {
	catalog := e.config.Catalog
	x := &catalogIndex{release: release, share: e.earlier.limit}
	if derives, err := x.derivesFrom(ctx, catalog, newest); err != nil {
		return nil, err
	} else if !derives {
		return readIndex(ctx, catalog, release, newest, e.earlier.limit)
	}
	x.releases = newest.releases[newest.release.ID-release.ID:]
	if err := x.readCategories(ctx, catalog); err != nil {
		return nil, err
	}
	all := store.WithAllVersions(ctx)
	replaced, err := readTools(all, catalog, newest, "tools_versions WHERE "+ofRelease, release.ID)
	if err != nil {
		return nil, err
	}
	x.tools = newest.toolsBefore(release.ID, replaced)
	comparisons, err := readComparisons(all, catalog, newest, x.find, "comparisons_versions WHERE published AND "+ofRelease, release.ID)
	if err != nil {
		return nil, err
	}
	x.deriveComparisons(newest, comparisons)
	return x, nil
}

// ofRelease selects the rows of the history that belong to a release.
const ofRelease = "since_release <= $1 AND until_release > $1"

// derivesFrom reports whether the index can be derived from the newest one: its
// release is earlier, and the newest index still matches the database.
func (x *catalogIndex) derivesFrom(ctx context.Context, catalog Catalog, newest *catalogIndex) (bool, error) {
	if x == newest || newest.release == nil {
		return false, nil
	}
	current, err := store.NewestRelease(ctx, catalog.Client().Release)
	return newest.isOf(current) && x.release.ID < newest.release.ID, err
}

// toolsBefore returns the tools of an earlier release: those that have not
// changed since, and those that were replaced, by slug.
func (x *catalogIndex) toolsBefore(release int, replaced []*indexedTool) []*indexedTool {
	same := 0
	for _, t := range x.tools {
		if t.since <= release {
			same++
		}
	}
	tools := make([]*indexedTool, 0, same+len(replaced))
	for _, t := range x.tools {
		if t.since > release {
			continue
		}
		for len(replaced) > 0 && replaced[0].slug < t.slug {
			tools, replaced = append(tools, replaced[0]), replaced[1:]
		}
		tools = append(tools, t)
	}
	return append(tools, replaced...)
}

// deriveComparisons sets the comparisons: those of the newest release that have
// not changed since, and those that were replaced.
func (x *catalogIndex) deriveComparisons(newest *catalogIndex, replaced []indexedComparison) {
	positions, _ := x.positionsIn(newest)
	moved := len(x.tools) != len(newest.tools) || slices.Contains(positions, -1)
	changed := slices.ContainsFunc(newest.comparisons, func(c indexedComparison) bool { return c.since > x.release.ID })
	if !moved && !changed && len(replaced) == 0 {
		x.comparisons, x.comparisonsOf = newest.comparisons, newest.comparisonsOf
		return
	}
	x.comparisons = replaced
	for _, c := range newest.comparisons {
		if c.since <= x.release.ID {
			c.toolA, c.toolB, c.winner = positions[c.toolA], positions[c.toolB], positions[c.winner]
			x.comparisons = append(x.comparisons, c)
		}
	}
	x.linkComparisons()
}

// positionsIn returns the position in this index of each tool of another one, or
// -1, and which of its own tools the indexes share.
func (x *catalogIndex) positionsIn(other *catalogIndex) (positions []int, shared []bool) {
	positions, shared = make([]int, len(other.tools)), make([]bool, len(x.tools))
	i := 0
	for at, t := range other.tools {
		for i < len(x.tools) && x.tools[i] != t && x.tools[i].slug < t.slug {
			i++
		}
		positions[at] = -1
		if i < len(x.tools) && (x.tools[i] == t || x.tools[i].slug == t.slug) {
			positions[at], shared[i] = i, x.tools[i] == t
			i++
		}
	}
	return positions, shared
}

// unshared estimates how many bytes this index takes in addition to the newest one.
func (x *catalogIndex) unshared(newest *catalogIndex) int64 {
	_, shared := x.positionsIn(newest)
	size := int64(len(x.tools)) * int64(unsafe.Sizeof(x.tools[0]))
	if found := x.searching.Load(); found != nil {
		size += found.Size(newest.searching.Load())
	}
	for i, t := range x.tools {
		if !shared[i] {
			size += t.size()
		}
	}
	if len(x.comparisons) == 0 || len(newest.comparisons) > 0 && &x.comparisons[0] == &newest.comparisons[0] {
		return size
	}
	const link = 64 // of a tool to its comparisons
	size += int64(len(x.comparisonsOf)) * link
	i := 0
	for at := range x.comparisons {
		c := &x.comparisons[at]
		for i < len(newest.comparisons) && compareComparisons(newest.comparisons[i], *c) < 0 {
			i++
		}
		if size += int64(unsafe.Sizeof(*c)); i == len(newest.comparisons) || newest.comparisons[i].Comparison != c.Comparison {
			size += c.size()
		}
	}
	return size
}

// sortWhenUsed prepares the orders, each of which is sorted on first use. An index
// that shares most of its tools with another one reuses their order.
func (x *catalogIndex) sortWhenUsed(other func() *catalogIndex) {
	once := func(o order, active bool, of func(*catalogIndex) []int) func() []int {
		return sync.OnceValue(func() []int {
			var positions []int
			if other == nil {
				positions = x.sorted(o, active, make([]bool, len(x.tools)))
			} else {
				positions = x.sortedLike(other(), of, o, active)
			}
			x.added.Add(int64(cap(positions)) * int64(unsafe.Sizeof(0)))
			return positions
		})
	}
	x.orders = map[model.ToolSort]func() []int{}
	for sort, o := range toolOrders {
		x.orders[sort] = once(o, true, func(other *catalogIndex) []int { return other.orders[sort]() })
	}
	x.retired = once(retiredOrder, false, func(other *catalogIndex) []int { return other.retired() })
}

// sorted returns the positions of active or retired tools in an order, without
// those in excluded.
func (x *catalogIndex) sorted(o order, active bool, excluded []bool) (positions []int) {
	for i, t := range x.tools {
		if t.active() == active && !excluded[i] {
			positions = append(positions, i)
		}
	}
	positions = slices.Clone(positions) // trims the capacity
	compare := o.comparison()
	slices.SortFunc(positions, func(a, b int) int { return compare(x.tools[a], x.tools[b]) })
	return positions
}

// sortedLike returns the same as sorted for all tools. It takes the order of shared
// tools from another index and sorts only the others.
func (x *catalogIndex) sortedLike(other *catalogIndex, of func(*catalogIndex) []int, o order, active bool) []int {
	positions, shared := x.positionsIn(other)
	own := x.sorted(o, active, shared)
	compare := o.comparison()
	count := len(own)
	for i, t := range x.tools {
		if shared[i] && t.active() == active {
			count++
		}
	}
	all := make([]int, 0, count)
	for _, at := range of(other) {
		i := positions[at]
		if i < 0 || x.tools[i] != other.tools[at] {
			continue
		}
		for len(own) > 0 && compare(x.tools[own[0]], x.tools[i]) < 0 {
			all, own = append(all, own[0]), own[1:]
		}
		all = append(all, i)
	}
	return append(all, own...)
}

// holder returns the index that the entity of a tool counts against: the newest one
// if it shares the tool.
func (e *Executor) holder(x *catalogIndex, t *indexedTool) *catalogIndex {
	newest := e.index.Load()
	if i, ok := newest.find(t.slug); ok && newest.tools[i] == t {
		return newest
	}
	return x
}
