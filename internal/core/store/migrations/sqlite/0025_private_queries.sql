-- Applications read private saved queries only if their users allowed it.
ALTER TABLE `oauth_grants` ADD COLUMN `private_queries` bool NOT NULL DEFAULT (false);
