ALTER TABLE `endpoints` ADD COLUMN `leased_by` text NOT NULL DEFAULT '';
ALTER TABLE `endpoints` ADD COLUMN `leased_until` datetime NULL;
-- Webhooks were scheduled with River, which is no longer used.
DROP TABLE IF EXISTS `river_client_queue`;
DROP TABLE IF EXISTS `river_client`;
DROP TABLE IF EXISTS `river_job`;
DROP TABLE IF EXISTS `river_leader`;
DROP TABLE IF EXISTS `river_queue`;
DROP TABLE IF EXISTS `river_migration`;
