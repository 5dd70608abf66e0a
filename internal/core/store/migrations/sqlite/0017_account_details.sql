ALTER TABLE `accounts` ADD COLUMN `language` text NOT NULL DEFAULT 'en';
ALTER TABLE `attempts` ADD COLUMN `test_body` text NOT NULL DEFAULT '';
ALTER TABLE `endpoints` ADD COLUMN `delivered_at` datetime NULL;
UPDATE `endpoints` SET `delivered_at` = (SELECT max(`at`) FROM `attempts` WHERE `endpoint_id` = `endpoints`.`id` AND `delivered`);
ALTER TABLE `sessions` ADD COLUMN `user_agent` text NOT NULL DEFAULT '';
CREATE TABLE `key_usages` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `account_id` integer NOT NULL, `day` text NOT NULL, `key` text NOT NULL, `endpoint` text NOT NULL, `requests` integer NOT NULL);
CREATE UNIQUE INDEX `keyusage_account_id_day_key_endpoint` ON `key_usages` (`account_id`, `day`, `key`, `endpoint`);
CREATE INDEX `keyusage_day` ON `key_usages` (`day`);
