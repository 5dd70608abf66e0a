// The whole flow with oauth4webapi, which is strict: from a 401 to a result, a refresh and
// a revocation. It prints the address for the browser and reads the one that the browser
// is sent back to.
// Usage: node oauth4webapi.mjs URL
import assert from 'node:assert/strict'
import readline from 'node:readline'
import * as oauth from 'oauth4webapi'

const [url] = process.argv.slice(2)
const insecure = {[oauth.allowInsecureRequests]: true} // the server is on this machine
const message = {jsonrpc: '2.0', id: 1, method: 'tools/call', params: {name: 'graphql_query', arguments: {query: '{tool(slug: "plume") {embeddings {hash}}}'}}}
const call = token => fetch(url, {
  method: 'POST', body: JSON.stringify(message),
  headers: {'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...token && {Authorization: `Bearer ${token}`}},
})

const refused = await call()
assert.equal(refused.status, 401)
const metadata = /resource_metadata="([^"]+)"/.exec(refused.headers.get('WWW-Authenticate'))[1]
const resource = await oauth.processResourceDiscoveryResponse(new URL(url), await oauth.resourceDiscoveryRequest(new URL(url), insecure))
assert.equal(new URL(metadata).pathname, '/.well-known/oauth-protected-resource/mcp')
const issuer = new URL(resource.authorization_servers[0])
const server = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, {algorithm: 'oauth2', ...insecure}))

const redirect = 'http://127.0.0.1:4000/callback'
const client = await oauth.processDynamicClientRegistrationResponse(await oauth.dynamicClientRegistrationRequest(
  server, {client_name: 'oauth4webapi', redirect_uris: [redirect], token_endpoint_auth_method: 'none'}, insecure))
const verifier = oauth.generateRandomCodeVerifier(), state = oauth.generateRandomState()
const address = new URL(server.authorization_endpoint)
address.search = new URLSearchParams({
  client_id: client.client_id, redirect_uri: redirect, response_type: 'code', state, resource: resource.resource,
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
})
console.log(address.href)
const [line] = await new Promise(resolve => readline.createInterface({input: process.stdin}).once('line', (...lines) => resolve(lines)))
process.stdin.unref?.()

const params = oauth.validateAuthResponse(server, client, new URL(line), state) // checks iss
const granted = await oauth.processAuthorizationCodeResponse(server, client, await oauth.authorizationCodeGrantRequest(
  server, client, oauth.None(), params, redirect, verifier, {additionalParameters: {resource: resource.resource}, ...insecure}))
const result = async token => (await (await call(token)).json()).result.structuredContent.tool.embeddings.hash
assert.match(await result(granted.access_token), /^sha256-/)

const refreshed = await oauth.processRefreshTokenResponse(server, client, await oauth.refreshTokenGrantRequest(server, client, oauth.None(), granted.refresh_token, insecure))
assert.match(await result(refreshed.access_token), /^sha256-/)
await oauth.processRevocationResponse(await oauth.revocationRequest(server, client, oauth.None(), refreshed.refresh_token, insecure))
assert.equal((await call(refreshed.access_token)).status, 401)
console.log('done')
process.exit(0)
