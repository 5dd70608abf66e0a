CREATE TABLE "former_handles" ("id" character varying NOT NULL COLLATE "C", PRIMARY KEY ("id"));
