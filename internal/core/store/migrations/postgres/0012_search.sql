DROP INDEX "tools_by_search_text";
ALTER TABLE "tools" DROP COLUMN "search_text";
-- The search index, which ent cannot describe: package search fills it.
CREATE TABLE "tool_search" ("id" integer NOT NULL, "slug" text NOT NULL COLLATE "C", "words" tsvector NOT NULL, PRIMARY KEY ("id"));
CREATE UNIQUE INDEX "tool_search_by_slug" ON "tool_search" ("slug");
CREATE INDEX "tool_search_by_words" ON "tool_search" USING GIN ("words");
CREATE TABLE "search_words" ("word" text NOT NULL COLLATE "C", "tools" integer NOT NULL, PRIMARY KEY ("word"));
