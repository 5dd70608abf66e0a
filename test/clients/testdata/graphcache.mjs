// Queries a server with urql and its normalized cache: node graphcache.mjs URL KEY
import assert from 'node:assert/strict';
import { Client, fetchExchange } from '@urql/core';
import { cacheExchange } from '@urql/exchange-graphcache';
import { checkClient } from './queries.mjs';

const [url, key] = process.argv.slice(2);
const stored = new Set(); // identities of the objects that the cache writes to its storage
const storage = {
  readData: async () => ({}),
  writeData: async (entries) => {
    // An entry is a field: its object, with dots escaped, and its name.
    for (const entry of Object.keys(entries)) stored.add(entry.split('.')[0].replaceAll('%2e', '.'));
  },
};
const client = new Client({
  url, exchanges: [cacheExchange({ storage }), fetchExchange], fetchOptions: { headers: { Authorization: `Bearer ${key}` } },
});
async function query(text, variables, requestPolicy) {
  const result = await client.query(text, variables ?? {}, { requestPolicy });
  assert.ifError(result.error);
  return result.data;
}

await checkClient({
  query: (text, variables) => query(text, variables, 'network-only'),
  readCache: (text, variables) => query(text, variables, 'cache-only'),
  cachedIdentities: async () => {
    await new Promise((resolve) => setTimeout(resolve, 100)); // written when idle
    return [...stored].filter((identity) => /^[A-Z]\w*:\w+\//.test(identity));
  },
});
