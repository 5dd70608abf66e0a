// Package journal stores one entry for each change that a release made to the
// catalog. Entries that readers notice are events; webhooks, streams, Atom
// feeds and the API's list of changes all read them from here.
package journal

import (
	"context"
	"time"

	"palmares/ent"
	"palmares/internal/core/lang"
)

// The kinds of changes. A tool that returns from retirement is created again,
// with its retired state as the one before.
const (
	CategoryCreated   = "category.created"
	CategoryUpdated   = "category.updated"
	CategoryRemoved   = "category.removed"
	ToolCreated       = "tool.created"
	ToolUpdated       = "tool.updated"
	ToolRetired       = "tool.retired"
	ToolRemoved       = "tool.removed"
	RetiredUpdated    = "retired.updated"
	PriceChanged      = "price.changed"    // the price changed since the last import
	PriceBackfilled   = "price.backfilled" // the feed added an older change
	ComparisonCreated = "comparatif.created"
	ComparisonUpdated = "comparatif.updated"
	ComparisonRemoved = "comparatif.removed"
	EmbeddingsChanged = "embeddings.changed" // a state is null if the tool is not in the set
	CatalogPublished  = "catalog.published"  // the last of a release
)

// The types of events. Changes that readers do not notice, such as those of
// unpublished comparisons, have none.
const (
	EventCatalogPublished    = "catalog.published" // the last of a release
	EventCategoryCreated     = "category.created"
	EventCategoryUpdated     = "category.updated"
	EventCategoryRemoved     = "category.removed"
	EventToolCreated         = "tool.created"
	EventToolUpdated         = "tool.updated"
	EventToolRetired         = "tool.retired"
	EventToolRemoved         = "tool.removed"
	EventRetiredUpdated      = "retired.updated"
	EventPriceChanged        = "price.changed"
	EventPriceBackfilled     = "price.backfilled"
	EventComparisonPublished = "comparatif.published"
	EventComparisonUpdated   = "comparatif.updated"
	EventComparisonRemoved   = "comparatif.removed" // or no longer published
	EventEmbeddingsChanged   = "embeddings.changed" // or its metadata
)

// Events lists all types of events.
var Events = []string{
	EventCatalogPublished, EventCategoryCreated, EventCategoryUpdated, EventCategoryRemoved,
	EventToolCreated, EventToolUpdated, EventToolRetired, EventToolRemoved, EventRetiredUpdated,
	EventPriceChanged, EventPriceBackfilled, EventComparisonPublished, EventComparisonUpdated, EventComparisonRemoved,
	EventEmbeddingsChanged,
}

// Titles are the names of the types of events for people, for several events.
var Titles = map[string]lang.Message{
	EventCatalogPublished: "Editions", EventCategoryCreated: "New categories", EventCategoryUpdated: "Updated categories", EventCategoryRemoved: "Removed categories",
	EventToolCreated: "New tools", EventToolUpdated: "Updated tools", EventToolRetired: "Retired tools", EventToolRemoved: "Removed tools", EventRetiredUpdated: "Updates to retired tools",
	EventPriceChanged: "Price changes", EventPriceBackfilled: "Earlier prices", EventComparisonPublished: "New comparisons", EventComparisonUpdated: "Updated comparisons",
	EventComparisonRemoved: "Removed comparisons", EventEmbeddingsChanged: "Review texts",
}

// ToolEvents are the types of events about a tool itself.
var ToolEvents = []string{
	EventToolCreated, EventToolUpdated, EventToolRetired, EventToolRemoved, EventRetiredUpdated,
	EventPriceChanged, EventPriceBackfilled, EventEmbeddingsChanged,
}

// Entry is one change. Before and After are JSON; nil for what does not exist.
type Entry struct {
	Kind                    string
	Event                   string // empty if readers do not notice the change
	Slug                    string
	Category, OtherCategory string // that changed, or of the tools that changed
	Before, After           []byte
}

const (
	// batchSize is small because the time that the SQLite driver needs to bind
	// a statement grows with the square of its parameters.
	batchSize = 130
	// batchBytes limits the size of the buffer, which may have a few large entries.
	batchBytes = 256 << 10
)

// Writer writes the entries of one release in batches.
type Writer struct {
	tx       *ent.Tx
	release  int
	buffered []Entry
	bytes    int
	next     int // number of the next entry; 0 before the first batch
	counts   map[string]int
}

// NewWriter returns a writer for a release that tx has already stored.
func NewWriter(tx *ent.Tx, release int) *Writer {
	return &Writer{tx: tx, release: release, counts: map[string]int{}}
}

// Counts returns how many events of each type were added.
func (w *Writer) Counts() map[string]int { return w.counts }

// Add buffers an entry, and writes the buffer when it is full.
func (w *Writer) Add(ctx context.Context, entry Entry) error {
	if entry.Event != "" {
		w.counts[entry.Event]++
	}
	w.buffered = append(w.buffered, entry)
	w.bytes += len(entry.Before) + len(entry.After)
	if len(w.buffered) < batchSize && w.bytes < batchBytes {
		return nil
	}
	return w.Flush(ctx)
}

// Flush writes the buffered entries.
func (w *Writer) Flush(ctx context.Context) error {
	entries := w.buffered
	w.buffered, w.bytes = w.buffered[:0], 0
	if len(entries) == 0 {
		return nil
	}
	if w.next == 0 {
		newest, err := Newest(ctx, w.tx.JournalEntry)
		if err != nil {
			return err
		}
		// Numbers start at the number of microseconds since 1970. No import writes
		// faster than one entry per microsecond, so a journal that was restored from
		// a backup continues above the numbers that clients have already seen.
		w.next = max(newest+1, int(time.Now().UnixMicro()))
	}
	first := w.next
	w.next += len(entries)
	return w.tx.JournalEntry.MapCreateBulk(entries, func(create *ent.JournalEntryCreate, i int) {
		e := entries[i]
		create.SetID(first + i).SetReleaseNumber(w.release).SetKind(e.Kind).SetSlug(e.Slug).SetCategory(e.Category).SetOtherCategory(e.OtherCategory)
		if e.Event != "" {
			create.SetEvent(e.Event)
		}
		if e.Before != nil {
			create.SetBefore(string(e.Before))
		}
		if e.After != nil {
			create.SetAfter(string(e.After))
		}
	}).Exec(ctx)
}
