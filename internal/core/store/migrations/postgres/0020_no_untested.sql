-- Nothing reads the column: the catalog is sorted in memory.
ALTER TABLE "tools" DROP CONSTRAINT "tools_untested_is_told", DROP COLUMN "untested";
ALTER TABLE "tools_versions" DROP COLUMN "untested";
