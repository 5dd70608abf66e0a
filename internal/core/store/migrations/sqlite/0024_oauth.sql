-- Applications that accounts have connected. There is no ent entity, whose generated code would be much longer than the
-- queries in auth/grant.go. Times are seconds since 1970, and hashes are SHA-256 in hexadecimal.
CREATE TABLE `oauth_grants` (`id` text NOT NULL PRIMARY KEY, `account_id` integer NOT NULL, `client_id` text NOT NULL, `client_name` text NOT NULL, `client_host` text NOT NULL, `verified` bool NOT NULL, `resource` text NOT NULL, `redirect_uri` text NOT NULL, `challenge` text NOT NULL, `code_hash` text NOT NULL, `code_expires_at` integer NOT NULL, `access_id` text NULL, `access_hash` text NOT NULL DEFAULT (''), `access_expires_at` integer NOT NULL DEFAULT (0), `refresh_hash` text NOT NULL DEFAULT (''), `refresh_expires_at` integer NOT NULL DEFAULT (0), `created_at` integer NOT NULL, `last_used_at` integer NOT NULL DEFAULT (0), CONSTRAINT `oauth_grants_accounts` FOREIGN KEY (`account_id`) REFERENCES `accounts` (`id`) ON DELETE CASCADE);
CREATE UNIQUE INDEX `oauth_grants_access_id_key` ON `oauth_grants` (`access_id`);
CREATE INDEX `oauth_grants_account_id` ON `oauth_grants` (`account_id`);
CREATE INDEX `oauth_grants_client_id` ON `oauth_grants` (`client_id`);
INSERT INTO `secrets` (`id`, `value`) VALUES ('oauth', randomblob(32));
