// Reads the demo catalog with the client that orval generates. It parses every body as
// JSON, so it cannot read downloads.
import { getTool, listTools } from "./orval/catalog.js";

const list = await listTools({ limit: 3, sort: "score_desc" });
const tool = await getTool("plume");
const nobody = await getTool("nobody");
if (list.status !== 200 || tool.status !== 200 || nobody.status !== 404) throw new Error("a response is missing");

// These would not compile if the types were not exact.
const score: number | null = tool.data.score;
const icp: "vibe-coder" | "agentic-engineer" | "mixte" = tool.data.icp;
const first: string = list.data.data[0]!.name;
const message: string = nobody.data.error;
if (!icp) throw new Error("a field is missing");

console.log(`${list.data.meta.total} tools, the first ${first}, plume ${score}, ${message}`);
