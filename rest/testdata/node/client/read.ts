// Reads the demo catalog with the types of the document alone.
import createClient from "openapi-fetch";
import type { paths } from "./schema.d.ts";

// Lists also have other formats, which this client does not request.
const client = createClient<paths, "application/json">({ baseUrl: process.argv[2]! });

const list = await client.GET("/api/v1/tools", { params: { query: { limit: 3, sort: "score_desc" } } });
const tool = await client.GET("/api/v1/tools/{slug}", { params: { path: { slug: "plume" } } });
const nobody = await client.GET("/api/v1/tools/{slug}", { params: { path: { slug: "nobody" } } });
if (!list.data || !tool.data || !nobody.error) throw new Error("an answer is missing");

// These would not compile if the types were not exact.
const score: number | null = tool.data.score;
const icp: "vibe-coder" | "agentic-engineer" | "mixte" = tool.data.icp;
const first: string = list.data.data[0]!.name;
const message: string = nobody.error.error;
if (!icp || !message) throw new Error("a field is missing");

console.log(`${list.data.meta.total} tools, the first ${first}, plume ${score}, ${nobody.response.status}`);
