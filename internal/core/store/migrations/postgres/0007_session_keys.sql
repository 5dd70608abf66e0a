ALTER TABLE "sessions" ADD COLUMN "key_id" character varying NULL COLLATE "C", ADD COLUMN "key_hash" bytea NULL;
CREATE UNIQUE INDEX "sessions_key_id_key" ON "sessions" ("key_id");
