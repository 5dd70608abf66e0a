CREATE TABLE `new_minutes` (`id` integer NOT NULL, `checks` integer NOT NULL, `failed` integer NOT NULL, `requests` integer NOT NULL DEFAULT (0), `errors` integer NOT NULL DEFAULT (0), PRIMARY KEY (`id`));
INSERT INTO `new_minutes` (`id`, `checks`, `failed`) SELECT `id`, `checks`, `failed` FROM `minutes`;
DROP TABLE `minutes`;
ALTER TABLE `new_minutes` RENAME TO `minutes`;
