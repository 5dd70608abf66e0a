ALTER TABLE "tools" ADD COLUMN "ends_at" character varying NULL COLLATE "C";
ALTER TABLE "tools_versions" ADD COLUMN "ends_at" character varying NULL COLLATE "C";
