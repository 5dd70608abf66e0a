// Reads two columns of a Parquet file over HTTP, and writes how many bytes were
// transferred, the size of the file and the first row as JSON.
import { asyncBufferFromUrl, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'

const [url, key] = process.argv.slice(2)
let transferred = 0
const counting = async (address, init) => {
  const response = await fetch(address, init)
  const body = await response.arrayBuffer()
  transferred += body.byteLength
  return new Response(init?.method === 'HEAD' ? null : body, { status: response.status, headers: response.headers })
}
const requestInit = { headers: { Authorization: 'Bearer ' + key } }
const file = await asyncBufferFromUrl({ url, requestInit, fetch: counting })
const metadata = await parquetMetadataAsync(file, { initialFetchSize: 16 << 10 }) // by default, all of a small file
const rows = await parquetReadObjects({ file, metadata, columns: ['slug', 'monthly_price'] })
console.log(JSON.stringify({ transferred, size: file.byteLength, rows: rows.length, first: rows[0] }))
