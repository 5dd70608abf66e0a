ALTER TABLE saved_queries ADD COLUMN title character varying NOT NULL DEFAULT '' COLLATE "C";
ALTER TABLE saved_queries ADD COLUMN chart character varying NOT NULL DEFAULT '' COLLATE "C";
-- The description had the title and the chart in its first two lines.
UPDATE saved_queries SET title = split_part(description, E'\n', 1), chart = split_part(description, E'\n', 2),
  description = substr(description, length(split_part(description, E'\n', 1)) + length(split_part(description, E'\n', 2)) + 3)
WHERE split_part(description, E'\n', 2) LIKE '{%}' AND description LIKE E'%\n%\n%';
