package store

// PostgresPool opens a pool with a timeout of its own.
var PostgresPool = postgresPool
