// Prints the breaking changes between two GraphQL schemas. Fields, arguments and values
// that were deprecated may be removed.
import { readFileSync } from "node:fs";
import { CriticalityLevel, DiffRule, diff } from "@graphql-inspector/core";
import { buildSchema } from "graphql";

const [before, after] = process.argv.slice(2).map((file) => buildSchema(readFileSync(file, "utf8")));
const changes = await diff(before, after, [DiffRule.suppressRemovalOfDeprecatedField]);
for (const { criticality, message } of changes) {
  if (criticality.level === CriticalityLevel.Breaking) console.log(message);
}
