ALTER TABLE "categories" ADD COLUMN "translations" text NULL;
ALTER TABLE "categories_versions" ADD COLUMN "translations" text NULL;
ALTER TABLE "comparisons" ADD COLUMN "translations" text NULL;
ALTER TABLE "comparisons_versions" ADD COLUMN "translations" text NULL;
ALTER TABLE "tools" ADD COLUMN "translations" text NULL, ADD COLUMN "sources" text NULL;
ALTER TABLE "tools_versions" ADD COLUMN "translations" text NULL, ADD COLUMN "sources" text NULL;
