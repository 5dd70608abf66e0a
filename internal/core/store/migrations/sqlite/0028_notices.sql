ALTER TABLE `endpoints` ADD COLUMN `tools` json NOT NULL DEFAULT '[]';
CREATE TABLE `notices` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `message_id` text NOT NULL, `about` text NOT NULL DEFAULT (''), `recipient` text NOT NULL, `subject` text NOT NULL, `text` text NOT NULL, `html` text NOT NULL, `link` text NOT NULL DEFAULT (''), `attempts` integer NOT NULL DEFAULT (0), `next_at` datetime NOT NULL, `created_at` datetime NOT NULL);
CREATE INDEX `notice_next_at` ON `notices` (`next_at`);
-- Slugs of tools were among those of categories.
UPDATE `endpoints` SET
  `tools` = (SELECT json_group_array(substr(value, 7)) FROM json_each(`categories`) WHERE value LIKE 'tools/%'),
  `categories` = (SELECT json_group_array(value) FROM json_each(`categories`) WHERE value NOT LIKE 'tools/%')
WHERE `categories` LIKE '%"tools/%';
-- Emails that were pending: servers find the broken queries again, and the endpoints get a short one.
UPDATE `saved_queries` SET `broken_reason` = '' WHERE `notify_owner`;
INSERT INTO `notices` (`message_id`, `about`, `recipient`, `subject`, `text`, `html`, `next_at`, `created_at`)
  SELECT lower(hex(randomblob(16))), 'endpoint ' || `endpoints`.`id`, `email`, 'A webhook endpoint was disabled',
    'Your webhook endpoint ' || `url` || ' was disabled: ' || `disabled_reason` || '.', '', strftime('%Y-%m-%d %H:%M:%S+00:00'), strftime('%Y-%m-%d %H:%M:%S+00:00')
  FROM `endpoints` JOIN `accounts` ON `accounts`.`id` = `endpoints`.`account_id` WHERE `notify_owner`;
DROP INDEX `savedquery_notify_owner`;
ALTER TABLE `endpoints` DROP COLUMN `notify_owner`;
ALTER TABLE `saved_queries` DROP COLUMN `notify_owner`;
