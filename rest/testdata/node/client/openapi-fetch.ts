// Reads the demo catalog with the types of the document alone.
import createClient from "openapi-fetch";
import type { paths } from "./schema.d.ts";

const client = createClient<paths>({ baseUrl: process.argv[2]! });

const list = await client.GET("/api/v1/tools", { params: { query: { limit: 3, sort: "score_desc" } } });
const tool = await client.GET("/api/v1/tools/{slug}", { params: { path: { slug: "plume" } } });
const nobody = await client.GET("/api/v1/tools/{slug}", { params: { path: { slug: "nobody" } } });
const table = await client.GET("/api/v1/tools.csv", {
  params: { query: { category: "code" } }, headers: { Authorization: "Bearer key" }, parseAs: "text",
});
if (!list.data || !tool.data || !nobody.error || !table.data) throw new Error("a response is missing");

// These would not compile if the types were not exact.
const score: number | null = tool.data.score;
const icp: "vibe-coder" | "agentic-engineer" | "mixte" = tool.data.icp;
const first: string = list.data.data[0]!.name;
const message: string = nobody.error.error;
const columns: string = table.data.split("\r\n")[0]!;
if (!icp) throw new Error("a field is missing");

console.log(`${list.data.meta.total} tools, the first ${first}, plume ${score}, ${message} ${columns}`);
