ALTER TABLE `categories` ADD COLUMN `translations` json NULL;
ALTER TABLE `comparisons` ADD COLUMN `translations` json NULL;
ALTER TABLE `categories_versions` ADD COLUMN `translations` json NULL;
ALTER TABLE `comparisons_versions` ADD COLUMN `translations` json NULL;
ALTER TABLE `tools_versions` ADD COLUMN `translations` json NULL;
ALTER TABLE `tools_versions` ADD COLUMN `sources` json NULL;
ALTER TABLE `tools` ADD COLUMN `translations` json NULL;
ALTER TABLE `tools` ADD COLUMN `sources` json NULL;
