-- The words of translations are added to the index at start-up: this row requests it.
INSERT INTO tool_search (id, slug, words, since_release, until_release)
  SELECT -1, '', '', 0, 0 WHERE EXISTS (SELECT 1 FROM tool_search);
