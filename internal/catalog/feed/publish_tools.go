package feed

import (
	"context"
	"slices"

	"palmares/ent"
	"palmares/ent/pricechange"
	"palmares/ent/section"
	"palmares/ent/tool"
	"palmares/internal/catalog/journal"
)

// writeTools brings active and retired tools to what the feed says.
func (p *publication) writeTools(ctx context.Context) error {
	differing := map[string]string{}
	for slug, line := range p.snap.tools {
		if p.stored.toolMayDiffer(slug, line) {
			differing[slug] = line.fingerprint
		}
	}
	p.report.Tools.Unchanged = len(p.snap.tools) - len(differing)
	return p.changedRecords(ctx, "writing tools", []string{typeTool, typeRetired}, differing, p.writeToolBatch)
}

// toolBatch collects the rows of one batch of tools.
type toolBatch struct {
	before     map[string]*ent.Tool     // as they were stored
	history    map[string][]PriceChange // their price changes, as they were stored
	rows       []*ent.ToolCreate
	reviewGone []string // slugs whose sections go
	sections   []*ent.SectionCreate
	prices     []*ent.PriceChangeCreate
}

func (p *publication) writeToolBatch(ctx context.Context, records []record) error {
	batch, err := p.loadToolBatch(ctx, records)
	if err != nil {
		return err
	}
	for _, rec := range records {
		switch rec := rec.(type) {
		case *Tool:
			err = p.addTool(ctx, batch, rec)
		case *Retired:
			err = p.addRetired(ctx, batch, rec)
		}
		if err != nil {
			return err
		}
	}
	return p.flushToolBatch(ctx, batch)
}

// loadToolBatch reads the stored side of the records.
func (p *publication) loadToolBatch(ctx context.Context, records []record) (*toolBatch, error) {
	batch := &toolBatch{before: map[string]*ent.Tool{}, history: map[string][]PriceChange{}}
	var slugs []string
	for _, rec := range records {
		if _, exists := p.stored.tools[rec.recordSlug()]; exists {
			slugs = append(slugs, rec.recordSlug())
		}
	}
	if len(slugs) == 0 {
		return batch, nil
	}
	tools, err := p.tx.Tool.Query().Where(tool.IDIn(slugs...)).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range tools {
		batch.before[row.ID] = row
	}
	prices, err := p.tx.PriceChange.Query().Where(pricechange.ToolSlugIn(slugs...)).Order(pricechange.ByID()).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range prices {
		batch.history[row.ToolSlug] = append(batch.history[row.ToolSlug], priceChangeRecord(row))
	}
	return batch, nil
}

func (p *publication) addTool(ctx context.Context, batch *toolBatch, t *Tool) error {
	line, before, history := p.snap.tools[t.Slug], batch.before[t.Slug], batch.history[t.Slug]
	prices, moved := newPrices(t, before, history)
	changed := before == nil || before.Fingerprint != line.fingerprint
	if !changed {
		p.report.Tools.Unchanged++
		if len(prices) == 0 {
			return nil
		}
	}
	for _, price := range prices {
		create := p.tx.PriceChange.Create()
		priceChangeRow(create, t.Slug, price)
		batch.prices = append(batch.prices, create)
	}
	whole := slices.Concat(history, prices)
	if err := checkFits(t, whole, line.number); err != nil {
		return err
	}
	create := p.tx.Tool.Create()
	toolRow(create, t, line, historyHash(whole))
	batch.rows = append(batch.rows, create)
	if before == nil || before.SectionsHash != line.sectionsHash {
		p.replaceSections(batch, before, t)
	}

	if changed {
		p.noteName(before, t.Name)
		entry := p.toolEntry(before, t)
		if before == nil || isRetired(before) {
			entry.Kind, entry.Event = journal.ToolCreated, journal.EventToolCreated
			p.report.Tools.Created++
		} else {
			p.report.Tools.Updated++
			if sameTool(toolRecord(before), t) {
				entry.Event = ""
			}
		}
		if err := p.tell(ctx, entry); err != nil {
			return err
		}
	}
	return p.tellPrices(ctx, t, prices, moved)
}

func (p *publication) addRetired(ctx context.Context, batch *toolBatch, r *Retired) error {
	line, before := p.snap.tools[r.Slug], batch.before[r.Slug]
	create := p.tx.Tool.Create()
	retiredRow(create, r, line)
	batch.rows = append(batch.rows, create)

	p.noteName(before, r.Name)
	entry := p.toolEntry(before, r)
	if before == nil || !isRetired(before) {
		entry.Kind, entry.Event = journal.ToolRetired, journal.EventToolRetired
		p.report.Tools.Retired++
		batch.reviewGone = append(batch.reviewGone, r.Slug)
	} else {
		p.report.Tools.Updated++
		if sameRetired(retiredRecord(before), r) {
			entry.Event = ""
		}
	}
	return p.tell(ctx, entry)
}

// toolEntry tells of an update, which it is unless the tool came, left or
// changes nothing for readers.
func (p *publication) toolEntry(before *ent.Tool, rec record) journal.Entry {
	slug := rec.recordSlug()
	return journal.Entry{
		Kind: journal.ToolUpdated, Event: journal.EventToolUpdated, Slug: slug,
		Category: p.categoryOf(slug), OtherCategory: p.movedFrom(slug), Before: toolState(before), After: summary(rec),
	}
}

// noteName keeps a name that is about to be lost: comparisons told it.
func (p *publication) noteName(before *ent.Tool, name string) {
	if before != nil && before.Name != name {
		p.renamed[before.ID] = before.Name
	}
}

func (p *publication) replaceSections(batch *toolBatch, before *ent.Tool, t *Tool) {
	if before != nil {
		batch.reviewGone = append(batch.reviewGone, t.Slug)
	}
	for position, s := range t.Sections {
		batch.sections = append(batch.sections, p.tx.Section.Create().
			SetToolSlug(t.Slug).SetPosition(position).SetSection(s.Section).SetText(s.Text))
	}
}

func (p *publication) flushToolBatch(ctx context.Context, batch *toolBatch) error {
	if err := upsertTools(ctx, p.tx, batch.rows); err != nil {
		return err
	}
	if len(batch.reviewGone) > 0 {
		if _, err := p.tx.Section.Delete().Where(section.ToolSlugIn(batch.reviewGone...)).Exec(ctx); err != nil {
			return err
		}
	}
	err := inBatches(batch.sections, insertBatch, func(rows []*ent.SectionCreate) error {
		return p.tx.Section.CreateBulk(rows...).Exec(ctx)
	})
	if err != nil {
		return err
	}
	return inBatches(batch.prices, insertBatch, func(rows []*ent.PriceChangeCreate) error {
		return p.tx.PriceChange.CreateBulk(rows...).Exec(ctx)
	})
}

// removeTools deletes what the feed no longer has; reviews and histories go
// with their tool.
func (p *publication) removeTools(ctx context.Context) error {
	return inBatches(missingFrom(p.snap.tools, p.stored.tools), upsertBatch, func(slugs []string) error {
		rows, err := p.tx.Tool.Query().Where(tool.IDIn(slugs...)).Order(tool.ByID()).All(ctx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			p.report.Tools.Removed++
			entry := journal.Entry{Kind: journal.ToolRemoved, Event: journal.EventToolRemoved, Slug: row.ID, Category: row.CategorySlug, Before: toolState(row)}
			if err := p.tell(ctx, entry); err != nil {
				return err
			}
		}
		_, err = p.tx.Tool.Delete().Where(tool.IDIn(slugs...)).Exec(ctx)
		return err
	})
}

// updateEmbeddings tells whose document changed, came or went, and moves the
// mark where only the mark moved: one tool's score can push another out.
func (p *publication) updateEmbeddings(ctx context.Context) error {
	slugs := map[string]bool{}
	for slug, stored := range p.stored.tools {
		if stored.inEmbeddings {
			slugs[slug] = true
		}
	}
	for slug, line := range p.snap.tools {
		if line.inEmbeddings {
			slugs[slug] = true
		}
	}
	moved := map[bool][]string{}
	for _, slug := range sortedKeys(slugs) {
		stored, line := p.stored.tools[slug], p.snap.tools[slug]
		var before, after []byte
		if stored.inEmbeddings {
			before = documentState(stored.sectionsHash)
		}
		if line != nil && line.inEmbeddings {
			after = documentState(line.sectionsHash)
		}
		if string(before) == string(after) {
			continue
		}
		entry := journal.Entry{Kind: journal.EmbeddingsChanged, Event: journal.EventEmbeddingsChanged, Slug: slug, Category: p.categoryOf(slug), OtherCategory: p.movedFrom(slug), Before: before, After: after}
		if err := p.tell(ctx, entry); err != nil {
			return err
		}
		moved[after != nil] = append(moved[after != nil], slug)
	}
	for in, slugs := range moved {
		if err := p.tx.Tool.Update().Where(tool.IDIn(slugs...)).SetInEmbeddings(in).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

func documentState(hash string) []byte {
	return encode(struct {
		Hash string `json:"hash"`
	}{hash})
}
