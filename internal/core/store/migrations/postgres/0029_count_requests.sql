ALTER TABLE "minutes" ADD COLUMN "requests" bigint NOT NULL DEFAULT 0, ADD COLUMN "errors" bigint NOT NULL DEFAULT 0;
