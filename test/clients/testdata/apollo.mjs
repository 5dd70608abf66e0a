// Queries a server with Apollo Client: node apollo.mjs URL KEY
import { ApolloClient, gql, HttpLink, InMemoryCache } from '@apollo/client';
import { checkClient } from './queries.mjs';

const [url, key] = process.argv.slice(2);
const cache = new InMemoryCache();
const client = new ApolloClient({ cache, link: new HttpLink({ uri: url, headers: { Authorization: `Bearer ${key}` } }) });

await checkClient({
  query: async (text, variables) => (await client.query({ query: gql(text), variables, fetchPolicy: 'network-only' })).data,
  readCache: async (text, variables) => (await client.query({ query: gql(text), variables, fetchPolicy: 'cache-only' })).data,
  cachedIdentities: () => Object.keys(cache.extract()).filter((identity) => identity.includes(':')),
});
