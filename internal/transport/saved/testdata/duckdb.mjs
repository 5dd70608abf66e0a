// Prints the number of rows and the columns of each CSV file: node duckdb.mjs FILE…
import { DuckDBInstance } from '@duckdb/node-api';

const connection = await (await DuckDBInstance.create(':memory:')).connect();
for (const file of process.argv.slice(2)) {
  const rows = await connection.runAndReadAll(`SELECT count(*) FROM read_csv('${file}')`);
  const columns = await connection.runAndReadAll(`DESCRIBE SELECT * FROM read_csv('${file}')`);
  const types = columns.getRows().map(([name, type]) => [name, /^(BIGINT|DOUBLE|INTEGER|DECIMAL.*)$/.test(type)]);
  console.log(JSON.stringify({ rows: Number(rows.getRows()[0][0]), columns: types }));
}
