-- Empties all tables, but those that migrations fill, and disconnects what the last test left
-- behind.
DO $$
DECLARE item record; used boolean;
BEGIN
	PERFORM pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
	SET LOCAL session_replication_role = replica;
	FOR item IN SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN ('schema_migrations', 'secrets') LOOP
		EXECUTE format('SELECT EXISTS (SELECT FROM %I)', item.name) INTO used;
		IF used THEN
			EXECUTE format('TRUNCATE %I CASCADE', item.name);
		END IF;
	END LOOP;
	FOR item IN SELECT sequencename AS name FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL LOOP
		EXECUTE format('ALTER SEQUENCE %I RESTART', item.name);
	END LOOP;
END $$
