package publish

import (
	"context"
	"maps"
	"slices"

	"palmares/ent"
	"palmares/ent/pricechange"
	"palmares/ent/section"
	"palmares/ent/tool"
	"palmares/internal/catalog/journal"
	"palmares/internal/catalog/pricing"
	"palmares/internal/catalog/record"
	"palmares/internal/catalog/search"
	"palmares/internal/core/store"
	"palmares/internal/core/text"
)

// writeTools creates and updates active and retired tools.
func (p *publication) writeTools(ctx context.Context) error {
	if err := p.readEarlierPrices(ctx); err != nil {
		return err
	}
	changed := map[string]string{}
	for slug, line := range p.snap.Tools {
		stored := p.stored.tools[slug] // empty for a new one
		// The feed and the journal may have price changes that are not stored yet.
		listed, recorded := line.HistoryHash, record.HistoryHash(p.earlier[slug].changes)
		if stored.fingerprint != line.Fingerprint || (listed != "" && listed != stored.historyHash) ||
			(recorded != "" && recorded != stored.historyHash) {
			changed[slug] = line.Fingerprint
		}
	}
	p.report.Tools.Unchanged = len(p.snap.Tools) - len(changed)
	return p.writeChanged(ctx, "writing tools", []string{record.TypeTool, record.TypeRetired}, changed, p.writeToolBatch)
}

// toolBatch collects the rows of a batch of tools.
type toolBatch struct {
	before   map[string]*ent.Tool            // the stored tools
	history  map[string][]record.PriceChange // the stored price changes
	rows     []*ent.ToolCreate
	outdated []string // slugs of tools whose stored sections are deleted
	sections []*ent.SectionCreate
	prices   []*ent.PriceChangeCreate
}

func (p *publication) writeToolBatch(ctx context.Context, records []record.Record) error {
	batch, err := p.newToolBatch(ctx, records)
	if err != nil {
		return err
	}
	for _, rec := range records {
		switch rec := rec.(type) {
		case *record.Tool:
			err = p.addTool(ctx, batch, rec)
		case *record.Retired:
			err = p.addRetired(ctx, batch, rec)
		}
		if err != nil {
			return err
		}
	}
	var written []string
	for _, row := range batch.rows {
		if slug, _ := row.Mutation().ID(); batch.before[slug] != nil {
			written = append(written, slug)
		}
	}
	if err := p.archive(ctx, store.Tools, written); err != nil {
		return err
	}
	if err := p.tx.Tool.CreateBulk(batch.rows...).OnConflict(replace(tool.FieldID, tool.Columns)...).Exec(ctx); err != nil {
		return err
	}
	if len(batch.outdated) > 0 {
		if err := p.archive(ctx, store.Sections, batch.outdated); err != nil {
			return err
		}
		if _, err := p.tx.Section.Delete().Where(section.ToolSlugIn(batch.outdated...)).Exec(ctx); err != nil {
			return err
		}
	}
	err = inBatches(batch.sections, insertSize, func(rows []*ent.SectionCreate) error {
		return p.tx.Section.CreateBulk(rows...).Exec(ctx)
	})
	if err != nil {
		return err
	}
	return inBatches(batch.prices, insertSize, func(rows []*ent.PriceChangeCreate) error {
		return p.tx.PriceChange.CreateBulk(rows...).Exec(ctx)
	})
}

func (p *publication) newToolBatch(ctx context.Context, records []record.Record) (*toolBatch, error) {
	batch := &toolBatch{history: map[string][]record.PriceChange{}}
	var err error
	batch.before, err = storedRows(records, p.stored.tools, func(slugs []string) ([]*ent.Tool, error) {
		return p.tx.Tool.Query().Where(tool.IDIn(slugs...)).All(ctx)
	}, func(row *ent.Tool) string { return row.ID })
	if err != nil || len(batch.before) == 0 {
		return batch, err
	}
	slugs := slices.Collect(maps.Keys(batch.before))
	prices, err := p.tx.PriceChange.Query().Where(pricechange.ToolSlugIn(slugs...)).Order(pricechange.ByID()).All(ctx)
	for _, row := range prices {
		batch.history[row.ToolSlug] = append(batch.history[row.ToolSlug], *record.FromRow[record.PriceChange](row))
	}
	return batch, err
}

func (p *publication) addTool(ctx context.Context, batch *toolBatch, t *record.Tool) error {
	line, before, stored := p.snap.Tools[t.Slug], batch.before[t.Slug], batch.history[t.Slug]
	restored := missingPrices(p.earlier[t.Slug].changes, stored)
	stored = slices.Concat(stored, restored)
	last := p.earlier[t.Slug].last
	if before != nil && !isRetired(before) {
		last = &lastPrice{string(before.Pricing), before.Price, before.UpdatedAt}
	}
	prices, current := newPrices(t, last, stored)
	changed := before == nil || before.Fingerprint != line.Fingerprint
	if !changed {
		p.report.Tools.Unchanged++
		if len(prices)+len(restored) == 0 {
			return nil
		}
		if err := p.createRelease(ctx); err != nil {
			return err
		}
	}
	for _, price := range slices.Concat(restored, prices) {
		row := p.tx.PriceChange.Create().SetToolSlug(t.Slug).SetDigest(price.Digest()).SetSinceRelease(p.number)
		record.ToRow(row.Mutation(), &price)
		batch.prices = append(batch.prices, row)
	}
	history := slices.Concat(stored, prices)
	if err := checkFits(t, history, line.Number, p.source); err != nil {
		return err
	}
	amount, period, _ := pricing.Parse(t.Price)
	batch.rows = append(batch.rows, p.newToolRow(t, t.Name).
		SetPriceAmount(amount).SetPricePeriod(period).
		SetSectionsHash(line.SectionsHash).SetHistoryHash(record.HistoryHash(history)).SetInEmbeddings(line.InEmbeddings))
	if before == nil || before.SectionsHash != line.SectionsHash {
		if before != nil {
			batch.outdated = append(batch.outdated, t.Slug)
		}
		for position, s := range t.Sections {
			row := p.tx.Section.Create().SetToolSlug(t.Slug).SetPosition(position).SetSinceRelease(p.number)
			record.ToRow(row.Mutation(), &s)
			batch.sections = append(batch.sections, row)
		}
	}
	if changed {
		entry := p.toolEntry(before, t, t.Name)
		if before == nil || isRetired(before) {
			entry.Kind, entry.Event = journal.ToolCreated, journal.EventToolCreated
			p.report.Tools.Created++
		} else {
			p.report.Tools.Updated++
			if record.SameInEvents(record.FromRow[record.Tool](before), t) && before.SectionsHash == line.SectionsHash {
				entry.Event = ""
			}
		}
		if err := p.record(ctx, entry); err != nil {
			return err
		}
	}
	return p.recordPrices(ctx, t, prices, current)
}

func (p *publication) addRetired(ctx context.Context, batch *toolBatch, r *record.Retired) error {
	before := batch.before[r.Slug]
	batch.rows = append(batch.rows, p.newToolRow(r, r.Name))
	entry := p.toolEntry(before, r, r.Name)
	if before == nil || !isRetired(before) {
		entry.Kind, entry.Event = journal.ToolRetired, journal.EventToolRetired
		p.report.Tools.Retired++
		batch.outdated = append(batch.outdated, r.Slug)
	} else {
		entry.Kind, entry.Event = journal.RetiredUpdated, journal.EventRetiredUpdated
		p.report.Tools.Updated++
		if record.SameInEvents(record.FromRow[record.Retired](before), r) {
			entry.Event = ""
		}
	}
	return p.record(ctx, entry)
}

// maxNameKey is well within the size of an index entry of either database.
const maxNameKey = 400

// newToolRow sets the columns that active and retired tools have.
func (p *publication) newToolRow(rec record.Record, name string) *ent.ToolCreate {
	row := p.tx.Tool.Create().SetID(rec.RecordSlug()).SetNameKey(text.SortKey(name, maxNameKey)).
		SetFingerprint(p.snap.Tools[rec.RecordSlug()].Fingerprint).SetSinceRelease(p.number)
	record.ToRow(row.Mutation(), rec)
	return row
}

// toolEntry returns the journal entry for an update. It also records the former name
// of a renamed tool, because events of comparisons show it.
func (p *publication) toolEntry(before *ent.Tool, rec record.Record, name string) journal.Entry {
	slug := rec.RecordSlug()
	if before != nil && before.Name != name {
		p.formerNames[slug] = before.Name
	}
	category, former := p.categoriesOf(slug)
	return journal.Entry{
		Kind: journal.ToolUpdated, Event: journal.EventToolUpdated, Slug: slug,
		Category: category, OtherCategory: former, Before: toolState(before), After: record.Summary(rec),
	}
}

// toolState encodes a stored tool for the journal; nil for none.
func toolState(row *ent.Tool) []byte {
	switch {
	case row == nil:
		return nil
	case isRetired(row):
		return record.Summary(record.FromRow[record.Retired](row))
	}
	return record.ToolSummary(record.FromRow[record.Tool](row), row.SectionsHash)
}

// categoriesOf returns the category of a tool and, if this import moves the
// tool, its former one: followers of either are notified.
func (p *publication) categoriesOf(slug string) (category, former string) {
	former = p.stored.tools[slug].category
	if line := p.snap.Tools[slug]; line != nil && line.Category != former {
		return line.Category, former
	}
	return former, ""
}

// removeTools deletes tools with their sections and price changes.
func (p *publication) removeTools(ctx context.Context) error {
	return inBatches(missingFrom(p.snap.Tools, p.stored.tools), batchSize, func(slugs []string) error {
		rows, err := p.tx.Tool.Query().Where(tool.IDIn(slugs...)).Order(tool.ByID()).All(ctx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			p.report.Tools.Removed++
			entry := journal.Entry{Kind: journal.ToolRemoved, Event: journal.EventToolRemoved, Slug: row.ID, Category: row.CategorySlug, Before: toolState(row)}
			if err := p.record(ctx, entry); err != nil {
				return err
			}
		}
		for _, table := range []store.Versioned{store.Tools, store.Sections, store.PriceChanges} {
			if err := p.archive(ctx, table, slugs); err != nil {
				return err
			}
		}
		_, err = p.tx.Tool.Delete().Where(tool.IDIn(slugs...)).Exec(ctx)
		return err
	})
}

// indexForSearch updates the search index of tools that changed, and of all
// tools in a category with a new label or translation.
func (p *publication) indexForSearch(ctx context.Context) error {
	slugs := missingFrom(p.snap.Tools, p.stored.tools)
	for slug, line := range p.snap.Tools {
		before, now := p.stored.categories[line.Category], p.snap.Categories[line.Category].Record
		if p.stored.tools[slug].fingerprint != line.Fingerprint || before == nil ||
			before.Label != now.Label || before.Translations != now.Translations {
			slugs = append(slugs, slug)
		}
	}
	slices.Sort(slugs)
	return search.Update(ctx, p.tx, p.dialect, p.number, slugs)
}

// updateEmbeddings records which embeddings documents changed. It also updates
// whether unchanged tools belong to the set: the score of one tool can push another
// one out.
func (p *publication) updateEmbeddings(ctx context.Context) error {
	documents := maps.Clone(p.stored.documents)
	for slug, line := range p.snap.Tools {
		if line.InEmbeddings {
			documents[slug] = line.Metadata
		}
	}
	marked := map[bool][]string{}
	for _, slug := range sortedKeys(documents) {
		metadata, wasMember := p.stored.documents[slug]
		entry := journal.Entry{Kind: journal.EmbeddingsChanged, Event: journal.EventEmbeddingsChanged, Slug: slug}
		if wasMember {
			entry.Before = documentState(p.stored.tools[slug].sectionsHash, metadata)
		}
		if line := p.snap.Tools[slug]; line != nil && line.InEmbeddings {
			entry.After = documentState(line.SectionsHash, line.Metadata)
		}
		if string(entry.Before) == string(entry.After) {
			continue
		}
		entry.Category, entry.OtherCategory = p.categoriesOf(slug)
		if err := p.record(ctx, entry); err != nil {
			return err
		}
		if member := entry.After != nil; member != wasMember {
			marked[member] = append(marked[member], slug)
		}
	}
	for member, slugs := range marked {
		if err := p.archive(ctx, store.Tools, slugs); err != nil {
			return err
		}
		if err := p.tx.Tool.Update().Where(tool.IDIn(slugs...)).SetInEmbeddings(member).SetSinceRelease(p.number).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// documentState encodes an embeddings document for the journal. Events show the hash
// and whether the metadata differs.
func documentState(hash, metadata string) []byte {
	return record.Encode(struct {
		Hash     string `json:"hash"`
		Metadata string `json:"metadata"`
	}{hash, metadata})
}
