// Package journal keeps one entry for each change that a release made to the
// catalog. It is what every way of telling changes reads; what a change is,
// the import decides.
package journal

import (
	"context"
	"time"

	"palmares/ent"
)

// The kinds of changes. A tool that comes back from retirement is created
// again, and its entry tells what it was.
const (
	CategoryCreated   = "category.created"
	CategoryUpdated   = "category.updated"
	CategoryRemoved   = "category.removed"
	ToolCreated       = "tool.created"
	ToolUpdated       = "tool.updated"
	ToolRetired       = "tool.retired"
	ToolRemoved       = "tool.removed"
	PriceChanged      = "price.changed"    // this import saw the price change
	PriceBackfilled   = "price.backfilled" // the feed told of an older change
	ComparisonCreated = "comparatif.created"
	ComparisonUpdated = "comparatif.updated"
	ComparisonRemoved = "comparatif.removed"
	EmbeddingsChanged = "embeddings.changed" // null: not in the set
	CatalogPublished  = "catalog.published"  // the last of a release
)

// Entry is one change. Before and After are JSON; nil for what was not there.
type Entry struct {
	Kind                    string
	Event                   string // what readers are told it is, see events.go; empty for what they are not told
	Slug                    string
	Category, OtherCategory string // of the tools it is about
	Before, After           []byte
}

// batch is how many entries go into one statement: few, because the SQLite
// driver's time to bind one grows with the square of its parameters.
const batch = 130

// batchBytes is how much text may wait, however few its entries.
const batchBytes = 256 << 10

// Writer collects the entries of one release and writes them in batches.
type Writer struct {
	tx      *ent.Tx
	release int
	waiting []Entry
	bytes   int
	next    int            // number of the next entry that is written; 0 before the first
	told    map[string]int // events by type
}

// NewWriter writes for a release that tx has already stored.
func NewWriter(tx *ent.Tx, release int) *Writer {
	return &Writer{tx: tx, release: release, told: map[string]int{}}
}

// Told counts the events that were added, by type.
func (w *Writer) Told() map[string]int { return w.told }

// Add takes an entry.
func (w *Writer) Add(ctx context.Context, entry Entry) error {
	if entry.Event != "" {
		w.told[entry.Event]++
	}
	w.waiting = append(w.waiting, entry)
	w.bytes += len(entry.Before) + len(entry.After)
	if len(w.waiting) < batch && w.bytes < batchBytes {
		return nil
	}
	return w.Flush(ctx)
}

// Flush writes what is waiting.
func (w *Writer) Flush(ctx context.Context) error {
	entries := w.waiting
	w.waiting, w.bytes = w.waiting[:0], 0
	if len(entries) == 0 {
		return nil
	}
	if w.next == 0 {
		newest, err := Newest(ctx, w.tx.JournalEntry)
		if err != nil {
			return err
		}
		w.next = max(newest+1, firstNumber())
	}
	first := w.next
	w.next += len(entries)
	return w.tx.JournalEntry.MapCreateBulk(entries, func(create *ent.JournalEntryCreate, i int) {
		e := entries[i]
		create.SetID(first + i).SetReleaseNumber(w.release).SetKind(e.Kind).SetSlug(e.Slug).SetCategory(e.Category).SetOtherCategory(e.OtherCategory)
		if e.Event != "" {
			create.SetEvent(e.Event)
		}
		create.SetNillableBefore(text(e.Before)).SetNillableAfter(text(e.After))
	}).Exec(ctx)
}

// firstNumber is what the entries of a release count up from: the microseconds
// since 1970. No import writes as many in its time, so a journal that was
// restored from a backup goes on above all that it had told after it.
func firstNumber() int { return int(time.Now().UnixMicro()) }

func text(data []byte) *string {
	if data == nil {
		return nil
	}
	s := string(data)
	return &s
}
