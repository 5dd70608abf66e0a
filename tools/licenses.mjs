// Fails if the built assets contain an npm package with a license that is not allowed. `make audit` runs it with the
// lock file and the allowed licenses; go-licenses checks the Go modules.
import {readFileSync} from "node:fs";

const [lock, list] = process.argv.slice(2);
const allowed = expression => expression.replace(/^\(|\)$/g, "").split(" OR ")
	.some(choice => choice.split(" AND ").every(license => list.split(",").includes(license)));
const rejected = Object.entries(JSON.parse(readFileSync(lock, "utf8")).packages)
	.filter(([path, {dev, optional, license}]) => path && !dev && !optional && !allowed(license ?? "")) // without build tools
	.map(([path, {version, license}]) => `not allowed: ${path} ${version}: ${license}`);
if (rejected.length) {
	console.error(rejected.join("\n"));
	process.exit(1);
}
