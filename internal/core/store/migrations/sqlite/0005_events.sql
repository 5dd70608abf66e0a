CREATE TABLE `new_journal_entries` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `kind` text NOT NULL, `slug` text NOT NULL, `event` text NULL, `category` text NOT NULL DEFAULT (''), `other_category` text NOT NULL DEFAULT (''), `before` text NULL, `after` text NULL, `release_number` integer NOT NULL, CONSTRAINT `journal_entries_releases_journal` FOREIGN KEY (`release_number`) REFERENCES `releases` (`number`) ON DELETE NO ACTION);
INSERT INTO `new_journal_entries` (`id`, `kind`, `slug`, `before`, `after`, `release_number`) SELECT `id`, `kind`, `slug`, `before`, `after`, `release_number` FROM `journal_entries`;
DROP TABLE `journal_entries`;
ALTER TABLE `new_journal_entries` RENAME TO `journal_entries`;
-- Derive the events of entries that were written before events existed.
UPDATE journal_entries SET event = kind WHERE kind IN ('tool.created', 'tool.updated', 'tool.retired', 'tool.removed', 'price.changed', 'embeddings.changed');
UPDATE journal_entries SET event = CASE
  WHEN (`after` IS NOT NULL AND `after` NOT LIKE '%"published":false%') AND NOT (`before` IS NOT NULL AND `before` NOT LIKE '%"published":false%') THEN 'comparatif.published'
  WHEN (`after` IS NOT NULL AND `after` NOT LIKE '%"published":false%') THEN 'comparatif.updated'
  WHEN (`before` IS NOT NULL AND `before` NOT LIKE '%"published":false%') THEN 'comparatif.removed' END
WHERE kind LIKE 'comparatif.%';
UPDATE journal_entries SET category = coalesce(json_extract(coalesce(`after`, `before`), '$.category'), '') WHERE kind LIKE 'tool.%';
UPDATE journal_entries SET category = coalesce((SELECT category_slug FROM tools WHERE tools.slug = journal_entries.slug), '') WHERE kind IN ('price.changed', 'embeddings.changed');
UPDATE journal_entries SET
  category = coalesce((SELECT category_slug FROM tools WHERE tools.slug = json_extract(coalesce(`after`, `before`), '$.tool_a')), ''),
  other_category = coalesce((SELECT category_slug FROM tools WHERE tools.slug = json_extract(coalesce(`after`, `before`), '$.tool_b')), '')
WHERE kind LIKE 'comparatif.%';
CREATE INDEX `journal_by_event` ON `journal_entries` (`event`, `id`);
CREATE INDEX `journal_by_slug` ON `journal_entries` (`slug`);
