ALTER TABLE "endpoints" ADD COLUMN "leased_by" character varying NOT NULL DEFAULT '' COLLATE "C", ADD COLUMN "leased_until" timestamptz NULL;
-- Servers of the previous version take no leases and may be sending right now.
UPDATE "endpoints" SET "leased_by" = 'upgrade', "leased_until" = now() + interval '1 minute';
-- Webhooks were scheduled with River, which is no longer used.
DROP TABLE IF EXISTS "river_client_queue", "river_client", "river_job", "river_leader", "river_queue", "river_migration";
DROP FUNCTION IF EXISTS river_job_notify;
DROP FUNCTION IF EXISTS river_job_state_in_bitmask;
DROP TYPE IF EXISTS river_job_state;
