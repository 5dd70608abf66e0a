ALTER TABLE `attempts` ADD COLUMN `events` json NULL;
ALTER TABLE `deliveries` ADD COLUMN `batch` integer NOT NULL DEFAULT 0;
ALTER TABLE `deliveries` ADD COLUMN `held` bool NOT NULL DEFAULT false;
ALTER TABLE `endpoints` ADD COLUMN `batches` bool NOT NULL DEFAULT false;
