ALTER TABLE `accounts` ADD COLUMN `handle` text NULL;
CREATE UNIQUE INDEX `accounts_handle_key` ON `accounts` (`handle`);
CREATE TABLE `query_versions` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `hash` text NOT NULL, `text` text NOT NULL, `public` bool NOT NULL, `created_at` datetime NOT NULL, `account_id` integer NOT NULL, CONSTRAINT `query_versions_accounts_query_versions` FOREIGN KEY (`account_id`) REFERENCES `accounts` (`id`) ON DELETE CASCADE);
CREATE UNIQUE INDEX `queryversion_hash_account_id` ON `query_versions` (`hash`, `account_id`);
CREATE INDEX `queryversion_account_id_created_at` ON `query_versions` (`account_id`, `created_at`);
CREATE TABLE `saved_queries` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `name` text NOT NULL, `hash` text NOT NULL, `description` text NOT NULL DEFAULT (''), `public` bool NOT NULL, `token_hash` text NULL, `broken_reason` text NOT NULL DEFAULT (''), `notify_owner` bool NOT NULL DEFAULT (false), `created_at` datetime NOT NULL, `updated_at` datetime NOT NULL, `account_id` integer NOT NULL, CONSTRAINT `saved_queries_accounts_saved_queries` FOREIGN KEY (`account_id`) REFERENCES `accounts` (`id`) ON DELETE CASCADE);
CREATE UNIQUE INDEX `saved_queries_token_hash_key` ON `saved_queries` (`token_hash`);
CREATE UNIQUE INDEX `savedquery_account_id_name` ON `saved_queries` (`account_id`, `name`);
CREATE INDEX `savedquery_notify_owner` ON `saved_queries` (`notify_owner`) WHERE notify_owner;
