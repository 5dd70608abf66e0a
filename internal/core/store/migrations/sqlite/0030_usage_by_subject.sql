ALTER TABLE `accounts` ADD COLUMN `subject` integer NULL;
CREATE UNIQUE INDEX `accounts_subject_key` ON `accounts` (`subject`);
-- One table for the requests of an account, by key and endpoint. The account is the subject that it had in memory and in Redis.
CREATE TABLE `new_usages` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `subject` integer NOT NULL, `day` text NOT NULL, `key` text NOT NULL, `endpoint` text NOT NULL, `requests` integer NOT NULL);
INSERT INTO `new_usages` (`subject`, `day`, `key`, `endpoint`, `requests`) SELECT 8589934592 + `account_id`, `day`, `key`, `endpoint`, `requests` FROM `key_usages`;
-- What is not counted by key and endpoint: the days before, and what was lost in crashes.
INSERT INTO `new_usages` (`subject`, `day`, `key`, `endpoint`, `requests`)
  SELECT 8589934592 + `account_id`, `day`, '', '', `requests` - COALESCE((SELECT SUM(`requests`) FROM `key_usages` WHERE `account_id` = `usages`.`account_id` AND `day` = `usages`.`day`), 0)
  FROM `usages`;
DELETE FROM `new_usages` WHERE `requests` = 0;
DROP TABLE `usages`;
DROP TABLE `key_usages`;
DROP TABLE `former_usages`;
ALTER TABLE `new_usages` RENAME TO `usages`;
CREATE UNIQUE INDEX `usage_subject_day_key_endpoint` ON `usages` (`subject`, `day`, `key`, `endpoint`);
CREATE INDEX `usage_day` ON `usages` (`day`);
