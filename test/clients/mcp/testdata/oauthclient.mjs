// The flow with the official TypeScript client, version 1 or 2: it signs in when a call
// requires an account, and refreshes its token. It prints the address for the browser and
// reads the one that the browser is sent back to.
// Usage: node oauthclient.mjs 1|2 URL
import assert from 'node:assert/strict'
import readline from 'node:readline'

const [version, url] = process.argv.slice(2)
const {Client, StreamableHTTPClientTransport, UnauthorizedError} = version === '2'
  ? await import('@modelcontextprotocol/client')
  : {
      ...await import('@modelcontextprotocol/sdk/client/index.js'), ...await import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
      ...await import('@modelcontextprotocol/sdk/client/auth.js'),
    }

const stored = {}
const provider = {
  redirectUrl: 'http://localhost:4000/callback',
  clientMetadata: {client_name: 'TypeScript', redirect_uris: ['http://localhost:4000/callback'], grant_types: ['authorization_code', 'refresh_token'], token_endpoint_auth_method: 'none'},
  state: () => 'some-state',
  clientInformation: () => stored.client,
  saveClientInformation: client => { stored.client = client },
  tokens: () => stored.tokens,
  saveTokens: tokens => { stored.tokens = tokens },
  codeVerifier: () => stored.verifier,
  saveCodeVerifier: verifier => { stored.verifier = verifier },
  redirectToAuthorization: address => console.log(address.href),
}
const connect = async () => {
  const transport = new StreamableHTTPClientTransport(new URL(url), {authProvider: provider})
  const client = new Client({name: 'test', version: '1'})
  await client.connect(transport)
  return {client, transport}
}
const embeddings = {name: 'graphql_query', arguments: {query: '{tool(slug: "plume") {embeddings {hash}}}'}}

const {client, transport} = await connect()
assert.ok((await client.listTools()).tools.length > 5)
const answered = new Promise(resolve => readline.createInterface({input: process.stdin}).once('line', resolve))
await assert.rejects(client.callTool(embeddings), UnauthorizedError)
const answer = new URL(await answered).searchParams
await transport.finishAuth(version === '2' ? answer : answer.get('code'), answer.get('iss'))

const {client: signedIn} = await connect()
const result = await signedIn.callTool(embeddings)
assert.match(result.structuredContent.tool.embeddings.hash, /^sha256-/)

const before = stored.tokens
stored.tokens = {...before, access_token: before.access_token.slice(0, -6) + 'aaaaaa'} // as if it had expired
const refreshed = await signedIn.callTool(embeddings)
assert.match(refreshed.structuredContent.tool.embeddings.hash, /^sha256-/)
assert.notEqual(stored.tokens.refresh_token, before.refresh_token)
console.log('done')
process.exit(0)
