-- Describes everything but the rows of the tables that empty.sql empties.
SELECT concat(
	(SELECT md5(string_agg(concat_ws(' ', attrelid::regclass, attname, atttypid::regtype, attnotnull), ',' ORDER BY attrelid::regclass::text, attnum))
		FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid WHERE relnamespace = 'public'::regnamespace),
	(SELECT md5(string_agg(concat_ws(' ', conrelid::regclass, pg_get_constraintdef(oid)), ',' ORDER BY conrelid::regclass::text, conname)) FROM pg_constraint
		WHERE connamespace = 'public'::regnamespace),
	(SELECT string_agg(tgname::text, ',' ORDER BY tgname) FROM pg_trigger WHERE NOT tgisinternal),
	(SELECT string_agg(proname::text, ',' ORDER BY proname) FROM pg_proc WHERE pronamespace = 'public'::regnamespace),
	(SELECT string_agg(nspname::text, ',' ORDER BY nspname) FROM pg_namespace WHERE nspname !~ '^pg_'),
	(SELECT string_agg(array_to_string(setconfig, ' '), ',') FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase WHERE datname = current_database()),
	(SELECT datconnlimit FROM pg_database WHERE datname = current_database()),
	(SELECT md5(string_agg(concat_ws(' ', version, name, applied_at), ',' ORDER BY version)) FROM schema_migrations),
	(SELECT md5(string_agg(concat_ws(' ', id, value), ',' ORDER BY id)) FROM secrets))
