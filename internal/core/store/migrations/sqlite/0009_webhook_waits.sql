CREATE INDEX `attempt_failed` ON `attempts` (`endpoint_id`, `at`) WHERE NOT delivered;
ALTER TABLE `endpoints` ADD COLUMN `not_before` datetime NULL;
ALTER TABLE `endpoints` ADD COLUMN `untold` bool NOT NULL DEFAULT false;
