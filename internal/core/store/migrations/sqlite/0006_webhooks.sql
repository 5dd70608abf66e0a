CREATE TABLE `attempts` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `event` integer NOT NULL, `type` text NOT NULL, `number` integer NOT NULL, `at` datetime NOT NULL, `status` integer NOT NULL, `took_ms` integer NOT NULL, `answer` text NOT NULL, `delivered` bool NOT NULL, `endpoint_id` integer NOT NULL, CONSTRAINT `attempts_endpoints_attempts` FOREIGN KEY (`endpoint_id`) REFERENCES `endpoints` (`id`) ON DELETE CASCADE);
CREATE INDEX `attempt_endpoint_id_at` ON `attempts` (`endpoint_id`, `at`);
CREATE INDEX `attempt_at` ON `attempts` (`at`);
CREATE TABLE `deliveries` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `event` integer NOT NULL, `attempts` integer NOT NULL DEFAULT (0), `next_at` datetime NOT NULL, `endpoint_id` integer NOT NULL, CONSTRAINT `deliveries_endpoints_deliveries` FOREIGN KEY (`endpoint_id`) REFERENCES `endpoints` (`id`) ON DELETE CASCADE);
CREATE UNIQUE INDEX `delivery_endpoint_id_event` ON `deliveries` (`endpoint_id`, `event`);
CREATE INDEX `delivery_next_at` ON `deliveries` (`next_at`);
CREATE TABLE `endpoints` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `url` text NOT NULL, `types` json NOT NULL, `categories` json NOT NULL, `secret` text NOT NULL, `former_secret` text NOT NULL DEFAULT (''), `former_until` datetime NULL, `state` text NOT NULL DEFAULT ('active'), `why` text NOT NULL DEFAULT (''), `position` integer NOT NULL, `failures` integer NOT NULL DEFAULT (0), `failing_since` datetime NULL, `created_at` datetime NOT NULL, `account_id` integer NOT NULL, CONSTRAINT `endpoints_accounts_endpoints` FOREIGN KEY (`account_id`) REFERENCES `accounts` (`id`) ON DELETE CASCADE);
CREATE INDEX `endpoint_account_id` ON `endpoints` (`account_id`);
CREATE INDEX `endpoint_state_position` ON `endpoints` (`state`, `position`);
