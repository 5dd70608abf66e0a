CREATE INDEX `tools_by_search_text` ON `tools` (`search_text`) WHERE retired_at IS NULL;
CREATE TABLE `comparison_categories` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `category_slug` text NOT NULL, `comparison_slug` text NOT NULL);
CREATE UNIQUE INDEX `comparisons_by_category` ON `comparison_categories` (`category_slug`, `comparison_slug`);
INSERT INTO comparison_categories (category_slug, comparison_slug) SELECT a.category_slug, c.slug FROM comparisons c JOIN tools a ON a.slug = c.tool_a_slug WHERE c.published UNION SELECT b.category_slug, c.slug FROM comparisons c JOIN tools b ON b.slug = c.tool_b_slug WHERE c.published;
