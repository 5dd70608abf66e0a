DROP INDEX `tools_by_search_text`;
ALTER TABLE `tools` DROP COLUMN `search_text`;
-- The search index, which ent cannot describe: package search fills it. The
-- tokenizer splits at spaces and leaves every other character as it is.
CREATE TABLE `tool_search` (`id` integer NOT NULL PRIMARY KEY, `slug` text NOT NULL, `words` text NOT NULL);
CREATE UNIQUE INDEX `tool_search_by_slug` ON `tool_search` (`slug`);
CREATE VIRTUAL TABLE `tool_search_index` USING fts5(words, content='tool_search', content_rowid='id', columnsize=0, detail=none, tokenize='ascii', prefix='1 2 3 4 5');
CREATE TRIGGER `tool_search_inserted` AFTER INSERT ON `tool_search` BEGIN
  INSERT INTO tool_search_index (rowid, words) VALUES (new.id, new.words);
END;
CREATE TRIGGER `tool_search_deleted` AFTER DELETE ON `tool_search` BEGIN
  INSERT INTO tool_search_index (tool_search_index, rowid, words) VALUES ('delete', old.id, old.words);
END;
CREATE TRIGGER `tool_search_updated` AFTER UPDATE ON `tool_search` BEGIN
  INSERT INTO tool_search_index (tool_search_index, rowid, words) VALUES ('delete', old.id, old.words);
  INSERT INTO tool_search_index (rowid, words) VALUES (new.id, new.words);
END;
CREATE TABLE `search_words` (`word` text NOT NULL, `tools` integer NOT NULL, PRIMARY KEY (`word`)) WITHOUT ROWID;
