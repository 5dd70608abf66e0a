-- Servers search in memory. They load the words of tools from tool_search.
DROP INDEX "tool_search_by_words";
DROP TABLE "search_words";
