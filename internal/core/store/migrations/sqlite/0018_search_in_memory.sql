-- Servers search in memory. They load the words of tools from tool_search.
DROP TRIGGER `tool_search_inserted`;
DROP TRIGGER `tool_search_deleted`;
DROP TRIGGER `tool_search_updated`;
DROP TABLE `tool_search_index`;
DROP TABLE `search_words`;
