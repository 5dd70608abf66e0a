CREATE TABLE `minutes` (`id` integer NOT NULL, `requests` integer NOT NULL, `failed` integer NOT NULL, PRIMARY KEY (`id`));
