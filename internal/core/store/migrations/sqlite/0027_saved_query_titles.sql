ALTER TABLE saved_queries ADD COLUMN title text NOT NULL DEFAULT ('');
ALTER TABLE saved_queries ADD COLUMN chart text NOT NULL DEFAULT ('');
-- The description had the title and the chart in its first two lines.
WITH lines AS (
  SELECT id, substr(description, 1, instr(description, char(10)) - 1) AS title, substr(description, instr(description, char(10)) + 1) AS rest
  FROM saved_queries WHERE instr(description, char(10)) > 0
), parts AS (
  SELECT id, title, substr(rest, 1, instr(rest, char(10)) - 1) AS chart, substr(rest, instr(rest, char(10)) + 1) AS description
  FROM lines WHERE rest LIKE '{%' AND instr(rest, char(10)) > 0
)
UPDATE saved_queries SET title = parts.title, chart = parts.chart, description = parts.description
FROM parts WHERE parts.id = saved_queries.id AND parts.chart LIKE '{%}';
