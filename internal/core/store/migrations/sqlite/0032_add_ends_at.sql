ALTER TABLE `tools` ADD COLUMN `ends_at` text NULL;
ALTER TABLE `tools_versions` ADD COLUMN `ends_at` text NULL;
