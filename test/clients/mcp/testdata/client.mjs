// A whole conversation with the official TypeScript client, version 1 or 2.
// Usage: node client.mjs 1|2 URL KEY
import assert from 'node:assert/strict'

const [version, url, key] = process.argv.slice(2)
const {Client, StreamableHTTPClientTransport} = version === '2'
  ? await import('@modelcontextprotocol/client')
  : {...await import('@modelcontextprotocol/sdk/client/index.js'), ...await import('@modelcontextprotocol/sdk/client/streamableHttp.js')}

const client = new Client({name: 'test', version: '1'})
await client.connect(new StreamableHTTPClientTransport(new URL(url), {requestInit: {headers: {Authorization: `Bearer ${key}`}}}))
assert.match(client.getInstructions(), /the data: Source : palmares/)

const {tools} = await client.listTools()
assert.equal(tools.length, 12)
const found = await client.callTool({name: 'search_tools', arguments: {search: 'plume', limit: 1}})
assert.equal(found.structuredContent.data[0].slug, 'plume')
const tool = await client.callTool({name: 'get_tool', arguments: {slug: found.structuredContent.data[0].slug}})
assert.ok(tool.structuredContent.tool.review.chunks.length > 0)
assert.match(tool.content[0].text, /Source : palmares/)
const wrong = await client.callTool({name: 'get_tool', arguments: {slug: 'plmue'}})
assert.ok(wrong.isError)
assert.match(wrong.content[0].text, /Did you mean plume\?/)

const {resources} = await client.listResources()
assert.ok(resources.some(resource => resource.uri === 'palmares://schema'))
const {resourceTemplates} = await client.listResourceTemplates()
assert.deepEqual(resourceTemplates.map(template => template.uriTemplate).sort(), ['palmares://guides/{name}', 'palmares://reviews/{slug}', 'palmares://tools/{slug}'])
const {contents} = await client.readResource({uri: 'palmares://tools/plume'})
assert.equal(JSON.parse(contents[0].text).tool.slug, 'plume')
const {prompts} = await client.listPrompts()
assert.deepEqual(prompts.map(prompt => prompt.name).sort(), ['choose_tool', 'what_changed'])
const {messages} = await client.getPrompt({name: 'choose_tool', arguments: {task: 'écrire un roman'}})
assert.match(messages[0].content.text, /écrire un roman/)
await client.close()
console.log('done')
