CREATE TABLE `new_sessions` (`id` text NOT NULL, `created_at` datetime NOT NULL, `expires_at` datetime NOT NULL, `key_id` text NULL, `key_hash` blob NULL, `account_id` integer NOT NULL, PRIMARY KEY (`id`), CONSTRAINT `sessions_accounts_sessions` FOREIGN KEY (`account_id`) REFERENCES `accounts` (`id`) ON DELETE NO ACTION);
INSERT INTO `new_sessions` (`id`, `created_at`, `expires_at`, `account_id`) SELECT `id`, `created_at`, `expires_at`, `account_id` FROM `sessions`;
DROP TABLE `sessions`;
ALTER TABLE `new_sessions` RENAME TO `sessions`;
CREATE UNIQUE INDEX `sessions_key_id_key` ON `sessions` (`key_id`);
CREATE INDEX `session_account_id` ON `sessions` (`account_id`);
CREATE INDEX `session_expires_at` ON `sessions` (`expires_at`);
