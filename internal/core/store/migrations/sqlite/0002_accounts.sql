CREATE TABLE `api_keys` (`id` text NOT NULL, `name` text NOT NULL, `secret_hash` blob NOT NULL, `created_at` datetime NOT NULL, `last_used_at` datetime NULL, `revoked_at` datetime NULL, `account_id` integer NOT NULL, PRIMARY KEY (`id`), CONSTRAINT `api_keys_accounts_keys` FOREIGN KEY (`account_id`) REFERENCES `accounts` (`id`) ON DELETE NO ACTION);
CREATE INDEX `apikey_account_id` ON `api_keys` (`account_id`);
CREATE TABLE `accounts` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `email` text NOT NULL, `plan` text NOT NULL, `created_at` datetime NOT NULL);
CREATE UNIQUE INDEX `accounts_email_key` ON `accounts` (`email`);
CREATE TABLE `count_batches` (`id` text NOT NULL, `day` text NOT NULL, `counts` blob NOT NULL, PRIMARY KEY (`id`));
CREATE INDEX `countbatch_day` ON `count_batches` (`day`);
CREATE TABLE `usages` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `day` text NOT NULL, `requests` integer NOT NULL, `account_id` integer NOT NULL, CONSTRAINT `usages_accounts_usage` FOREIGN KEY (`account_id`) REFERENCES `accounts` (`id`) ON DELETE NO ACTION);
CREATE UNIQUE INDEX `usage_account_id_day` ON `usages` (`account_id`, `day`);
