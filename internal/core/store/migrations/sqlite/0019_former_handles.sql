CREATE TABLE `former_handles` (`id` text NOT NULL, PRIMARY KEY (`id`));
