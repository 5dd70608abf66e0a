CREATE INDEX "attempt_failed" ON "attempts" ("endpoint_id", "at") WHERE NOT delivered;
ALTER TABLE "endpoints" ADD COLUMN "not_before" timestamptz NULL, ADD COLUMN "untold" boolean NOT NULL DEFAULT false;
