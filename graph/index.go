package graph

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/category"
	"palmares/ent/pricechange"
	entrelease "palmares/ent/release"
	"palmares/ent/tool"
	"palmares/graph/model"
	"palmares/internal/catalog/search"
	"palmares/internal/core/store"
)

// catalogIndex holds one release of the catalog in memory: the values of every
// tool that filters, orders and groups need, every category and published
// comparison, and as many entities as its share of the memory budget allows.
// Apart from entities, which are added as they are read, it never changes.
type catalogIndex struct {
	release       *ent.Release   // nil before the first import
	releases      []*ent.Release // up to this one, newest first
	categories    []*model.Category
	tools         []*indexedTool      // active and retired, by slug; shared with the indexes of other releases that have them
	comparisons   []indexedComparison // most recently updated first, then by slug
	comparisonsOf map[int][]int       // positions of the comparisons of each tool

	share int64        // the maximum size, in bytes
	bytes atomic.Int64 // the approximate size of its tools and comparisons
	added atomic.Int64 // the size of the orders and indexes that were added later

	orders       map[model.ToolSort]func() []int // of active tools
	retired      func() []int                    // in retiredOrder
	priceChanges atomic.Pointer[[]indexedPriceChange]
	searching    atomic.Pointer[search.Index]
	versions     atomic.Pointer[timeline]
}

// indexedTool has the values of a tool that are always in the index. Numbers
// that a tool does not have are NaN, which satisfies no condition.
type indexedTool struct {
	slug, nameKey, category, updatedAt, retiredAt string

	searchName string // as search.Rank compares it

	pricing model.Pricing
	icp     string
	reason  model.RetirementReason
	tier    string

	score, verifiability, obsolescence, price, monthlyPrice float64

	inEmbeddings bool
	since        int                    // the release that wrote it
	version      uint64                 // of the entity
	entity       atomic.Pointer[entity] // nil if not in memory
}

// size estimates how many bytes a tool takes, with its entity.
func (t *indexedTool) size() int64 {
	size := int64(unsafe.Sizeof(*t)) + int64(len(t.slug)+len(t.nameKey))
	if e := t.entity.Load(); e != nil {
		size += e.size()
	}
	return size
}

func (t *indexedTool) active() bool { return t.retiredAt == "" }

// entity has all stored data of a tool except its review.
type entity struct {
	tool         *model.Tool // one of these is nil
	retired      *model.RetiredTool
	version      uint64
	sectionsHash string
	inEmbeddings bool
	prices       []*model.PriceChange // newest first
}

type indexedComparison struct {
	*model.Comparison    // without its tools
	toolA, toolB, winner int
	since                int // the release that wrote it
}

// size estimates how many bytes a comparison takes.
func (c *indexedComparison) size() int64 {
	return int64(unsafe.Sizeof(*c)+unsafe.Sizeof(*c.Comparison)) + int64(len(c.Slug)+len(c.Title)+len(c.WinnerNote)+len(c.CanonicalURL))
}

// find returns the position of a tool.
func (x *catalogIndex) find(slug string) (position int, ok bool) {
	return slices.BinarySearchFunc(x.tools, slug, func(t *indexedTool, slug string) int { return strings.Compare(t.slug, slug) })
}

// indexFor returns the index of a release. Reading one that is not in memory
// requires a transaction: without it, the index could mix two releases.
func (e *Executor) indexFor(ctx context.Context, release *ent.Release) (*catalogIndex, error) {
	current := e.index.Load()
	if current.isOf(release) {
		return current, nil
	}
	if !store.InTransaction(ctx) {
		return nil, store.ErrNeedsTransaction
	}
	unlock, err := e.indexing.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if current = e.index.Load(); current.isOf(release) {
		return current, nil
	}
	x, err := readIndex(ctx, e.config.Catalog, release, current, e.config.Cache.Size()/2)
	if err != nil {
		return nil, err
	}
	x.sortWhenUsed(nil)
	e.index.Store(x)
	e.earlier.rebase(x)
	e.reserve()
	return x, nil
}

// reserve makes the cache leave memory for the indexes.
func (e *Executor) reserve() {
	e.config.Cache.Reserve(e.index.Load().bytes.Load() + e.earlier.weight())
}

// semaphore lets one index be read at a time.
type semaphore chan struct{}

// lock waits until no other index is being read, or ctx ends: a frozen database
// must not block an operation beyond its time limit.
func (s semaphore) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (x *catalogIndex) isOf(release *ent.Release) bool {
	if x == nil || x.release == nil || release == nil {
		return x != nil && x.release == release
	}
	// A restored backup may reuse a number.
	return x.release.ID == release.ID && x.release.ImportedAt.Equal(release.ImportedAt) && x.release.HistoryFrom == release.HistoryFrom
}

// readIndex reads the index of a release. It shares unchanged tools with another
// index.
func readIndex(ctx context.Context, catalog Catalog, release *ent.Release, other *catalogIndex, share int64) (*catalogIndex, error) {
	x := &catalogIndex{release: release, share: share}
	if release == nil {
		return x, nil
	}
	var err error
	if x.releases, err = catalog.Client().Release.Query().Where(entrelease.IDLTE(release.ID)).Order(entrelease.ByID(entsql.OrderDesc())).All(ctx); err != nil {
		return nil, err
	}
	if err := x.readCategories(ctx, catalog); err != nil {
		return nil, err
	}
	if x.tools, err = readTools(ctx, catalog, other, "tools"); err != nil {
		return nil, err
	}
	for _, t := range x.tools {
		x.bytes.Add(t.size())
	}
	if x.comparisons, err = readComparisons(ctx, catalog, other, x.find, "comparisons WHERE published"); err != nil {
		return nil, err
	}
	x.linkComparisons()
	for i := range x.comparisons {
		x.bytes.Add(x.comparisons[i].size())
	}
	return x, nil
}

func (x *catalogIndex) readCategories(ctx context.Context, catalog Catalog) error {
	rows, err := catalog.Client().Category.Query().Order(category.ByID()).All(ctx)
	x.categories = mapSlice(rows, func(row *ent.Category) *model.Category {
		return &model.Category{
			ID: categoryID(row.ID), Slug: row.ID, Label: row.Label, ToolCount: row.ToolCount, AvgScore: row.AvgScore, AvgScoreOrZero: orZero(row.AvgScore),
		}
	})
	return err
}

// readComparisons reads comparisons and shares unchanged ones with another index.
func readComparisons(ctx context.Context, catalog Catalog, other *catalogIndex, find func(string) (int, bool), from string, args ...any) (comparisons []indexedComparison, err error) {
	rows, err := catalog.Select(ctx, `SELECT slug, title, winner_note, updated_at, canonical_url, tool_a_slug, tool_b_slug, winner_slug, since_release FROM `+from, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		c := indexedComparison{Comparison: &model.Comparison{}}
		var toolA, toolB, winner string
		if err := rows.Scan(&c.Slug, &c.Title, &c.WinnerNote, &c.UpdatedAt, &c.CanonicalURL, &toolA, &toolB, &winner, &c.since); err != nil {
			return nil, err
		}
		c.ID = comparisonID(c.Slug)
		if known := other.comparison(c); known != nil && *known == *c.Comparison {
			c.Comparison = known
		}
		c.toolA, _ = find(toolA) // the database checks that they exist
		c.toolB, _ = find(toolB)
		c.winner, _ = find(winner)
		comparisons = append(comparisons, c)
	}
	return comparisons, rows.Err()
}

// comparison returns the comparison with the same slug and date, or nil.
func (x *catalogIndex) comparison(c indexedComparison) *model.Comparison {
	if x == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(x.comparisons, c, compareComparisons)
	if !ok {
		return nil
	}
	return x.comparisons[i].Comparison
}

func compareComparisons(a, b indexedComparison) int {
	return cmp.Or(strings.Compare(b.UpdatedAt, a.UpdatedAt), strings.Compare(a.Slug, b.Slug))
}

// linkComparisons sorts the comparisons and lists those of each tool.
func (x *catalogIndex) linkComparisons() {
	slices.SortFunc(x.comparisons, compareComparisons)
	x.comparisonsOf = map[int][]int{}
	for i, c := range x.comparisons {
		x.comparisonsOf[c.toolA] = append(x.comparisonsOf[c.toolA], i)
		if c.toolB != c.toolA {
			x.comparisonsOf[c.toolB] = append(x.comparisonsOf[c.toolB], i)
		}
	}
}

// full reports whether most entities would exceed the share.
func (x *catalogIndex) full() bool { return x.bytes.Load()+entitySize > x.share }

// entitySize is larger than most entities, in bytes.
const entitySize = 2 << 10

// hold adds an entity to a tool of the index if it fits the share.
func (x *catalogIndex) hold(t *indexedTool, e *entity) {
	if e.version != t.version { // it was read from a newer release
		return
	}
	if size := e.size(); x.bytes.Add(size) > x.share || !t.entity.CompareAndSwap(nil, e) {
		x.bytes.Add(-size)
	}
}

// size estimates how many bytes an entity takes.
func (e *entity) size() int64 {
	size := int(unsafe.Sizeof(*e)) + len(e.sectionsHash)
	if t := e.tool; t != nil {
		size += int(unsafe.Sizeof(*t)) + len(t.ID) + len(t.Slug) + len(t.Name) + len(t.Domain) + len(t.Price) + len(t.PricePeriod) +
			len(t.Tagline) + len(t.CanonicalURL) + len(t.AlternativesURL) + 4*8
		if t.AvisURL != nil {
			size += 16 + len(*t.AvisURL)
		}
	}
	if t := e.retired; t != nil {
		size += int(unsafe.Sizeof(*t)) + len(t.ID) + len(t.Slug) + len(t.Name) + len(t.Note)
	}
	for _, p := range e.prices {
		size += int(unsafe.Sizeof(*p)) + len(p.Price) + len(p.PreviousPrice) + len(p.ChangedAt) + 5*8
	}
	return int64(size)
}

// maxParameters is below the number of parameters that either database accepts.
const maxParameters = 10_000

// entities returns the entities of tools, from memory or from the database. Those
// that are read only for this operation have no prices unless it needs them.
func (r *reader) entities(ctx context.Context, positions []int, prices bool) ([]*entity, error) {
	found := make([]*entity, len(positions))
	var missing []string
	for i, position := range positions {
		if found[i] = r.index.tools[position].entity.Load(); found[i] == nil {
			missing = append(missing, r.index.tools[position].slug)
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	read := map[string]*entity{}
	prices = prices || !r.index.full() || !r.executor.index.Load().full()
	for slugs := range slices.Chunk(distinct(missing), maxParameters) {
		if err := readEntities(ctx, r.client, slugs, prices, read); err != nil {
			return nil, err
		}
	}
	for i, position := range positions {
		if t := r.index.tools[position]; found[i] == nil {
			if found[i] = read[t.slug]; found[i] == nil {
				return nil, fmt.Errorf("tool %s is missing from release %d", t.slug, r.release.ID)
			}
			if prices {
				r.executor.holder(r.index, t).hold(t, found[i])
			}
		}
	}
	return found, nil
}

func readEntities(ctx context.Context, client *ent.Client, slugs []string, withPrices bool, into map[string]*entity) error {
	rows, err := client.Tool.Query().Where(tool.IDIn(slugs...)).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		e := &entity{sectionsHash: row.SectionsHash, inEmbeddings: row.InEmbeddings,
			version: versionOf(row.Fingerprint, row.SectionsHash, row.HistoryHash, row.InEmbeddings)}
		if row.RetiredAt == "" {
			e.tool = toolFields.model(row)
		} else {
			e.retired = retiredFields.model(row)
		}
		into[row.ID] = e
	}
	if !withPrices {
		return nil
	}
	prices, err := client.PriceChange.Query().Where(pricechange.ToolSlugIn(slugs...)).
		Order(pricechange.ByChangedAt(entsql.OrderDesc()), pricechange.ByID(entsql.OrderDesc())).All(ctx)
	for _, row := range prices {
		if e := into[row.ToolSlug]; e != nil {
			e.prices = append(e.prices, priceChange(row))
		}
	}
	return err
}

// retryAfter is how long Run waits after a failure.
const retryAfter = 5 * time.Second

// Run preloads the newest release at the start and after each announcement, until
// ctx ends.
func (e *Executor) Run(ctx context.Context) {
	for {
		announced, _ := e.NextRelease()
		var retry <-chan time.Time
		if err := e.Preload(ctx); err != nil && ctx.Err() == nil {
			e.config.Log.WarnContext(ctx, "preloading the catalog failed, will retry", "cause", err)
			retry = time.After(retryAfter)
		}
		select {
		case <-ctx.Done():
			return
		case <-announced:
		case <-retry:
		}
	}
}

// Preload reads the index of the newest release and as many entities as fit, so that
// most operations do not need the database.
func (e *Executor) Preload(ctx context.Context) error {
	var x *catalogIndex
	err := e.config.Catalog.WithRelease(ctx, func(ctx context.Context, release *ent.Release) (err error) {
		if x, err = e.indexFor(ctx, release); err != nil || release == nil {
			return err
		}
		_, err = x.searchIndex(ctx, e.config.Catalog, x)
		_, err2 := x.allPriceChanges(ctx, e.config.Catalog, x)
		_, err3 := x.readTimeline(ctx, e.config.Catalog, release.HistoryFrom)
		return cmp.Or(err, err2, err3)
	})
	if err != nil {
		return err
	}
	for _, sorted := range x.orders {
		sorted()
	}
	var missing []string
	for _, t := range x.tools {
		if t.entity.Load() == nil {
			missing = append(missing, t.slug)
		}
	}
	for slugs := range slices.Chunk(missing, preloadBatch) {
		if x.full() || e.index.Load() != x {
			break
		}
		read := map[string]*entity{}
		if err := readEntities(ctx, e.config.Catalog.Client(), slugs, true, read); err != nil {
			return err
		}
		for slug, found := range read {
			if i, ok := x.find(slug); ok {
				x.hold(x.tools[i], found)
			}
		}
	}
	e.reserve()
	e.config.Log.InfoContext(ctx, "catalog preloaded", "release", x.number(), "tools", len(x.tools), "bytes", x.bytes.Load())
	return nil
}

// number returns the number of the release, or 0.
func (x *catalogIndex) number() int {
	if x.release == nil {
		return 0
	}
	return x.release.ID
}

// preloadBatch is how many entities are read at a time: few enough that other
// requests are not delayed.
const preloadBatch = 500
