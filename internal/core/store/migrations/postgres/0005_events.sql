DROP INDEX "journal_by_release";
ALTER TABLE "journal_entries" ADD COLUMN "event" character varying NULL COLLATE "C", ADD COLUMN "category" character varying NOT NULL DEFAULT '' COLLATE "C", ADD COLUMN "other_category" character varying NOT NULL DEFAULT '' COLLATE "C";
-- Derive the events of entries that were written before events existed.
UPDATE journal_entries SET event = kind WHERE kind IN ('tool.created', 'tool.updated', 'tool.retired', 'tool.removed', 'price.changed', 'embeddings.changed');
UPDATE journal_entries SET event = CASE
  WHEN ("after" IS NOT NULL AND "after" NOT LIKE '%"published":false%') AND NOT ("before" IS NOT NULL AND "before" NOT LIKE '%"published":false%') THEN 'comparatif.published'
  WHEN ("after" IS NOT NULL AND "after" NOT LIKE '%"published":false%') THEN 'comparatif.updated'
  WHEN ("before" IS NOT NULL AND "before" NOT LIKE '%"published":false%') THEN 'comparatif.removed' END
WHERE kind LIKE 'comparatif.%';
UPDATE journal_entries SET category = coalesce(coalesce("after", "before")::jsonb ->> 'category', '') WHERE kind LIKE 'tool.%';
UPDATE journal_entries SET category = coalesce((SELECT category_slug FROM tools WHERE tools.slug = journal_entries.slug), '') WHERE kind IN ('price.changed', 'embeddings.changed');
UPDATE journal_entries SET
  category = coalesce((SELECT category_slug FROM tools WHERE tools.slug = coalesce("after", "before")::jsonb ->> 'tool_a'), ''),
  other_category = coalesce((SELECT category_slug FROM tools WHERE tools.slug = coalesce("after", "before")::jsonb ->> 'tool_b'), '')
WHERE kind LIKE 'comparatif.%';
CREATE INDEX "journal_by_event" ON "journal_entries" ("event", "id");
CREATE INDEX "journal_by_slug" ON "journal_entries" ("slug");
