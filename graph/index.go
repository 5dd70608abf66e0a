package graph

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	entsql "entgo.io/ent/dialect/sql"

	"palmares/ent"
	"palmares/ent/category"
	"palmares/ent/comparison"
	"palmares/ent/pricechange"
	entrelease "palmares/ent/release"
	"palmares/ent/tool"
	"palmares/graph/model"
	"palmares/internal/core/store"
)

// catalogIndex holds one release of the catalog in memory: the values of every
// tool that filters, orders and groups need, every category and published
// comparison, and as many entities as its share of the memory budget allows.
// Apart from entities, which are added as they are read, it never changes.
type catalogIndex struct {
	release     *ent.Release   // nil before the first import
	releases    []*ent.Release // up to this one, newest first
	categories  []*model.Category
	tools       []indexedTool            // active and retired, by slug
	entities    []atomic.Pointer[entity] // of the tools; nil if not in memory
	comparisons []indexedComparison      // in comparisonOrder
	citing      map[int][]int            // the comparisons of each tool

	share int64        // how many bytes it may hold
	bytes atomic.Int64 // how many it holds, approximately

	orders       map[model.ToolSort]func() []int // of active tools
	retired      func() []int                    // in retiredOrder
	priceChanges atomic.Pointer[[]indexedPriceChange]
	searching    atomic.Pointer[searchIndex]
}

// indexedTool has the values of a tool that are always in the index. Numbers
// that a tool does not have are NaN, which satisfies no condition.
type indexedTool struct {
	slug, nameKey, category, updatedAt, retiredAt string

	pricing model.Pricing
	icp     string
	reason  model.RetirementReason
	tier    string

	score, verifiability, obsolescence, price float64

	version uint64 // of the entity
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
}

// find returns the position of a tool.
func (x *catalogIndex) find(slug string) (position int, ok bool) {
	return slices.BinarySearchFunc(x.tools, slug, func(t indexedTool, slug string) int { return strings.Compare(t.slug, slug) })
}

// indexFor returns the index of a release. If it is not in memory, it is read,
// which needs a transaction: without one, it could mix two releases.
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
	e.config.Cache.Reserve(x.bytes.Load())
	e.index.Store(x)
	return x, nil
}

// semaphore lets one index be read at a time. It is full meanwhile.
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
	// A restored backup may use a number again.
	return x.release.ID == release.ID && x.release.ImportedAt.Equal(release.ImportedAt) && x.release.HistoryFrom == release.HistoryFrom
}

// readIndex reads the index of a release. It takes over the entities of an
// earlier index that did not change.
func readIndex(ctx context.Context, catalog Catalog, release *ent.Release, earlier *catalogIndex, share int64) (*catalogIndex, error) {
	x := &catalogIndex{release: release, share: share, citing: map[int][]int{}, orders: map[model.ToolSort]func() []int{}}
	for sort, o := range toolOrders { // each is sorted when it is first used
		x.orders[sort] = sync.OnceValue(func() []int { return x.sorted(o, true) })
	}
	x.retired = sync.OnceValue(func() []int { return x.sorted(retiredOrder, false) })
	if release == nil {
		return x, nil
	}
	var err error
	if x.releases, err = catalog.Client().Release.Query().Where(entrelease.IDLTE(release.ID)).Order(entrelease.ByID(entsql.OrderDesc())).All(ctx); err != nil {
		return nil, err
	}
	categories, err := catalog.Client().Category.Query().Order(category.ByID()).All(ctx)
	if err != nil {
		return nil, err
	}
	x.categories = mapSlice(categories, func(row *ent.Category) *model.Category {
		return &model.Category{
			Slug: row.ID, Label: row.Label, ToolCount: row.ToolCount, AvgScore: row.AvgScore, AvgScoreOrZero: orZero(row.AvgScore),
		}
	})
	if err := x.readTools(ctx, catalog); err != nil {
		return nil, err
	}
	if err := x.readComparisons(ctx, catalog); err != nil {
		return nil, err
	}
	if earlier != nil {
		x.takeOver(earlier)
	}
	return x, nil
}

// readTools reads the columns that the index holds.
func (x *catalogIndex) readTools(ctx context.Context, catalog Catalog) error {
	rows, err := catalog.Select(ctx, `SELECT slug, name_key, category_slug, coalesce(updated_at, ''), coalesce(retired_at, ''),
		coalesce(pricing, ''), coalesce(icp, ''), coalesce(retired_reason, ''), CAST(coalesce(tier, 0) AS text),
		score, verifiability, obsolescence, price_amount, fingerprint, coalesce(sections_hash, ''), coalesce(history_hash, ''), in_embeddings
		FROM tools ORDER BY slug`)
	if err != nil {
		return err
	}
	defer rows.Close()
	repeated := interner{}
	var fingerprint, sections, history string
	for rows.Next() {
		var t indexedTool
		var inEmbeddings bool
		if err := rows.Scan(&t.slug, &t.nameKey, repeated.scan(&t.category), repeated.scan(&t.updatedAt), repeated.scan(&t.retiredAt),
			repeated.scan((*string)(&t.pricing)), repeated.scan(&t.icp), repeated.scan((*string)(&t.reason)), repeated.scan(&t.tier),
			numberOrNaN{&t.score}, numberOrNaN{&t.verifiability}, numberOrNaN{&t.obsolescence}, numberOrNaN{&t.price},
			&fingerprint, &sections, &history, &inEmbeddings); err != nil {
			return err
		}
		t.version = versionOf(fingerprint, sections, history, inEmbeddings)
		x.bytes.Add(int64(unsafe.Sizeof(t)) + int64(len(t.slug)+len(t.nameKey)))
		x.tools = append(x.tools, t)
	}
	x.entities = make([]atomic.Pointer[entity], len(x.tools))
	return rows.Err()
}

func (x *catalogIndex) readComparisons(ctx context.Context, catalog Catalog) error {
	rows, err := catalog.Client().Comparison.Query().Where(comparison.Published(true)).
		Order(comparison.ByUpdatedAt(entsql.OrderDesc()), comparison.ByID()).All(ctx)
	if err != nil {
		return err
	}
	for i, row := range rows {
		c := indexedComparison{Comparison: &model.Comparison{
			Slug: row.ID, Title: row.Title, WinnerNote: row.WinnerNote, UpdatedAt: row.UpdatedAt, CanonicalURL: row.CanonicalURL,
		}}
		c.toolA, _ = x.find(row.ToolASlug) // the database checks that they exist
		c.toolB, _ = x.find(row.ToolBSlug)
		c.winner, _ = x.find(row.WinnerSlug)
		x.comparisons = append(x.comparisons, c)
		x.citing[c.toolA] = append(x.citing[c.toolA], i)
		if c.toolB != c.toolA {
			x.citing[c.toolB] = append(x.citing[c.toolB], i)
		}
		x.bytes.Add(int64(unsafe.Sizeof(c)+unsafe.Sizeof(*c.Comparison)) + int64(len(row.ID)+len(row.Title)+len(row.WinnerNote)+len(row.CanonicalURL)))
	}
	return nil
}

// takeOver shares the entities of an earlier release that did not change.
func (x *catalogIndex) takeOver(earlier *catalogIndex) {
	for i, t := range x.tools {
		if j, ok := earlier.find(t.slug); ok && earlier.tools[j].version == t.version {
			x.hold(i, earlier.entities[j].Load())
		}
	}
}

// hold adds an entity to the index, if there is room for it.
func (x *catalogIndex) hold(position int, e *entity) {
	if e == nil || e.version != x.tools[position].version { // it was read from a newer release
		return
	}
	if size := e.size(); x.bytes.Add(size) > x.share || !x.entities[position].CompareAndSwap(nil, e) {
		x.bytes.Add(-size)
	}
}

// size estimates how many bytes an entity takes.
func (e *entity) size() int64 {
	size := int(unsafe.Sizeof(*e)) + len(e.sectionsHash)
	if t := e.tool; t != nil {
		size += int(unsafe.Sizeof(*t)) + len(t.Slug) + len(t.Name) + len(t.Domain) + len(t.Price) + len(t.PricePeriod) +
			len(t.Tagline) + len(t.CanonicalURL) + len(t.AlternativesURL) + 3*8
		if t.AvisURL != nil {
			size += 16 + len(*t.AvisURL)
		}
	}
	if t := e.retired; t != nil {
		size += int(unsafe.Sizeof(*t)) + len(t.Slug) + len(t.Name) + len(t.Note)
	}
	for _, p := range e.prices {
		size += int(unsafe.Sizeof(*p)) + len(p.Price) + len(p.PreviousPrice) + len(p.ChangedAt)
	}
	return int64(size)
}

// maxParameters is below the number of parameters that either database accepts.
const maxParameters = 10_000

// entities returns the entities of tools, from memory or else from the
// database.
func (r *reader) entities(ctx context.Context, positions []int) ([]*entity, error) {
	found := make([]*entity, len(positions))
	var missing []string
	for i, position := range positions {
		if found[i] = r.index.entities[position].Load(); found[i] == nil {
			missing = append(missing, r.index.tools[position].slug)
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	read := map[string]*entity{}
	for slugs := range slices.Chunk(distinct(missing), maxParameters) {
		if err := readEntities(ctx, r.client, slugs, read); err != nil {
			return nil, err
		}
	}
	for i, position := range positions {
		if slug := r.index.tools[position].slug; found[i] == nil {
			if found[i] = read[slug]; found[i] == nil {
				return nil, fmt.Errorf("tool %s is missing from release %d", slug, r.release.ID)
			}
			r.index.hold(position, found[i])
		}
	}
	return found, nil
}

func readEntities(ctx context.Context, client *ent.Client, slugs []string, into map[string]*entity) error {
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
	prices, err := client.PriceChange.Query().Where(pricechange.ToolSlugIn(slugs...)).
		Order(pricechange.ByChangedAt(entsql.OrderDesc()), pricechange.ByID(entsql.OrderDesc())).All(ctx)
	for _, row := range prices {
		if e := into[row.ToolSlug]; e != nil {
			e.prices = append(e.prices, &model.PriceChange{
				ChangedAt: row.ChangedAt, Pricing: model.Pricing(row.Pricing), Price: row.Price,
				PreviousPricing: model.Pricing(row.PreviousPricing), PreviousPrice: row.PreviousPrice,
			})
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
		announced, _ := e.releases.wait()
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

// Preload reads the index of the newest release and as many entities as it may
// hold, so that most operations need no database.
func (e *Executor) Preload(ctx context.Context) error {
	var x *catalogIndex
	err := e.config.Catalog.WithRelease(ctx, func(ctx context.Context, release *ent.Release) (err error) {
		if x, err = e.indexFor(ctx, release); err != nil || release == nil {
			return err
		}
		_, err = x.searchIndex(ctx, e.config.Catalog)
		_, err2 := x.allPriceChanges(ctx, e.config.Catalog)
		return cmp.Or(err, err2)
	})
	if err != nil {
		return err
	}
	for _, sorted := range x.orders {
		sorted()
	}
	var missing []string
	for i, t := range x.tools {
		if x.entities[i].Load() == nil {
			missing = append(missing, t.slug)
		}
	}
	for slugs := range slices.Chunk(missing, preloadBatch) {
		if x.bytes.Load() >= x.share || e.index.Load() != x {
			break
		}
		read := map[string]*entity{}
		if err := readEntities(ctx, e.config.Catalog.Client(), slugs, read); err != nil {
			return err
		}
		for slug, found := range read {
			if i, ok := x.find(slug); ok {
				x.hold(i, found)
			}
		}
	}
	e.config.Cache.Reserve(x.bytes.Load())
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

var versionSeed = maphash.MakeSeed()

// versionOf identifies the content of an entity within this process.
func versionOf(fingerprint, sectionsHash, historyHash string, inEmbeddings bool) uint64 {
	return maphash.String(versionSeed, fmt.Sprint(fingerprint, " ", sectionsHash, " ", historyHash, " ", inEmbeddings))
}

// interner scans texts of which there are few different ones, and shares them.
type interner map[string]string

type interned struct {
	known interner
	text  *string
}

func (n interner) scan(text *string) interned { return interned{n, text} }

// Scan implements sql.Scanner.
func (i interned) Scan(value any) error {
	switch v := value.(type) {
	case string:
		*i.text = i.known.share(v)
	case []byte:
		known, ok := i.known[string(v)]
		if !ok {
			known = i.known.share(string(v))
		}
		*i.text = known
	default:
		return fmt.Errorf("got %T, want text", value)
	}
	return nil
}

func (n interner) share(text string) string {
	known, ok := n[text]
	if !ok {
		known, n[text] = text, text
	}
	return known
}

// numberOrNaN scans a number that may be null.
type numberOrNaN struct{ number *float64 }

// Scan implements sql.Scanner.
func (n numberOrNaN) Scan(value any) error {
	var number sql.Null[float64]
	err := number.Scan(value)
	if *n.number = number.V; !number.Valid {
		*n.number = math.NaN()
	}
	return err
}
