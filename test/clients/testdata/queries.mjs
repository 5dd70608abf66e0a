// Requests that the tests of client caches share. Each client normalizes objects
// by __typename and id, without any configuration of types.
import assert from 'node:assert/strict';

export const tool = `query Tool { tool(slug: "plume") { __typename id slug name } }`;

export const lists = `query Lists {
  toolConnection { nodes { __typename id score } }
  categories { __typename id slug label }
  comparisonConnection(first: 5) { nodes { __typename id slug toolA { __typename id name } toolB { __typename id name } } }
  releases(first: 3) { nodes { __typename id number date } }
}`;

// merged requires the results of both queries.
export const merged = `query Merged { tool(slug: "plume") { __typename id name score } }`;

// earlier reads other root fields than merged: clients store those by name and
// arguments, without @asOf, so that only the objects below them are distinguished.
export const earlier = `query Earlier @asOf(release: 1) {
  toolConnection { nodes { __typename id slug name score } }
}`;

export const chunks = `query Chunks($slug: String!) {
  embeddings(slug: $slug) { __typename slug chunks { __typename text metadata { __typename section } } }
}`;

// reviewed are two tools whose reviews have sections of the same names.
export const reviewed = ['plume', 'bosco-et-matelots'];

// entitiesOf returns the identity of each object with an ID in a result.
export function entitiesOf(value, found = new Set()) {
  if (Array.isArray(value)) {
    value.forEach((item) => entitiesOf(item, found));
  } else if (value !== null && typeof value === 'object') {
    if ('id' in value) {
      assert.ok(value.id, `${value.__typename} has no id`);
      found.add(`${value.__typename}:${value.id}`);
    }
    Object.values(value).forEach((item) => entitiesOf(item, found));
  }
  return found;
}

// checkClient reads with a client. query and readCache return the data of an
// operation, cachedIdentities the identities of all cached objects with an ID.
export async function checkClient({ query, readCache, cachedIdentities }) {
  const read = [await query(tool), await query(lists)];
  const expected = entitiesOf(read);
  for (const type of ['Tool', 'Category', 'Comparison', 'Release']) {
    assert.ok([...expected].some((identity) => identity.startsWith(type + ':')), `nothing of type ${type} was read`);
  }
  assert.deepEqual([...(await cachedIdentities())].sort(), [...expected].sort());

  const present = await readCache(merged);
  assert.deepEqual({ ...present.tool }, { __typename: 'Tool', id: read[0].tool.id, name: 'Plume', score: 8.1 });

  const past = (await query(earlier)).toolConnection.nodes.find((node) => node.slug === 'plume');
  assert.equal(past.score, 7.5);
  assert.notEqual(past.id, present.tool.id);
  assert.deepEqual(await readCache(merged), present);

  const documents = [];
  for (const slug of reviewed) documents.push(await query(chunks, { slug }));
  const sections = documents.map((d) => d.embeddings.chunks.map((c) => c.metadata.section));
  assert.ok(sections[0].some((section) => sections[1].includes(section)), 'the reviews have no section in common');
  for (const [i, slug] of reviewed.entries()) assert.deepEqual(await readCache(chunks, { slug }), documents[i]);
}
