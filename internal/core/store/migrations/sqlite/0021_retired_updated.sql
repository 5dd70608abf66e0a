-- Updates of retired tools have another shape than those of active tools, so they have their own type.
UPDATE `journal_entries` SET `kind` = 'retired.updated', `event` = CASE WHEN `event` IS NULL THEN NULL ELSE 'retired.updated' END
WHERE `kind` = 'tool.updated' AND `after` LIKE '%"retired_at":"%' AND `after` ->> 'retired_at' IS NOT NULL;
