// Runs statements on the Parquet files of several folders: [{folder, tables, statements}]
// from standard input. Writes the rows of each statement as JSON.
import { readFileSync } from 'node:fs'
import { DuckDBInstance } from '@duckdb/node-api'

const plain = value => typeof value === 'bigint' ? Number(value) : value
const db = await (await DuckDBInstance.create(':memory:')).connect()
const results = []
for (const { folder, tables, statements } of JSON.parse(readFileSync(0))) {
  for (const table of tables) {
    await db.run(`CREATE OR REPLACE VIEW ${table} AS SELECT * FROM read_parquet('${folder}/${table}.parquet')`)
  }
  const all = []
  for (const statement of statements) {
    const rows = (await db.runAndReadAll(statement)).getRows()
    all.push(rows.map(row => row.map(plain)))
  }
  results.push(all)
}
console.log(JSON.stringify(results))
