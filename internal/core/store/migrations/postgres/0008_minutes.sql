CREATE TABLE "minutes" ("id" bigint NOT NULL, "requests" bigint NOT NULL, "failed" bigint NOT NULL, PRIMARY KEY ("id"));
