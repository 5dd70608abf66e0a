// The API reference: Scalar with the server's OpenAPI document.
import { createApiReference } from "@scalar/api-reference";
import "./reference.css";
import { configuration } from "./configuration.js";
import { applyFixes, referenceFixes } from "./fixes.js";

const { document: url, key } = JSON.parse(document.getElementById("workbench").textContent);
const colorScheme = matchMedia("(prefers-color-scheme: dark)");
const current = () => configuration({ url, key, server: location.origin, dark: colorScheme.matches });

applyFixes(document.body, referenceFixes);
document.getElementById("reference").replaceChildren(); // Scalar would keep the loading message
const reference = createApiReference("#reference", current());
colorScheme.addEventListener("change", () => reference.updateConfiguration(current()));
