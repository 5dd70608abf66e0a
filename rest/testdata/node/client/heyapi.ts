// Reads the demo catalog with the client that hey-api generates.
import { client } from "./heyapi/client.gen.js";
import { downloadToolsAsCsv, getTool, listTools } from "./heyapi/index.js";

client.setConfig({ baseUrl: process.argv[2]! });
const list = await listTools({ query: { limit: 3, sort: "score_desc" } });
const tool = await getTool({ path: { slug: "plume" } });
const nobody = await getTool({ path: { slug: "nobody" } });
const table = await downloadToolsAsCsv({ query: { category: "code" }, auth: "key" });
if (!list.data || !tool.data || !nobody.error || !table.data) throw new Error("a response is missing");

// These would not compile if the types were not exact.
const score: number | null = tool.data.score;
const icp: "vibe-coder" | "agentic-engineer" | "mixte" = tool.data.icp;
const first: string = list.data.data[0]!.name;
const message: string = nobody.error.error;
const columns: string = table.data.split("\r\n")[0]!;
if (!icp) throw new Error("a field is missing");

console.log(`${list.data.meta.total} tools, the first ${first}, plume ${score}, ${message} ${columns}`);
