ALTER TABLE "attempts" ADD COLUMN "events" text NULL;
ALTER TABLE "deliveries" ADD COLUMN "batch" bigint NOT NULL DEFAULT 0, ADD COLUMN "held" boolean NOT NULL DEFAULT false;
ALTER TABLE "endpoints" ADD COLUMN "batches" boolean NOT NULL DEFAULT false;
