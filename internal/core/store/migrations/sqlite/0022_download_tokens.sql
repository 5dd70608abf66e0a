CREATE TABLE `download_tokens` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `name` text NOT NULL, `token_hash` text NOT NULL, `created_at` datetime NOT NULL, `last_used_at` datetime NULL, `account_id` integer NOT NULL, CONSTRAINT `download_tokens_accounts_download_tokens` FOREIGN KEY (`account_id`) REFERENCES `accounts` (`id`) ON DELETE CASCADE);
CREATE UNIQUE INDEX `download_tokens_token_hash_key` ON `download_tokens` (`token_hash`);
CREATE INDEX `downloadtoken_account_id` ON `download_tokens` (`account_id`);
