// Configuration of Scalar. Everything that would contact another host is off.

import { messages } from "./messages.js";

// Samples are shown for curl, JavaScript, Python and Go.
const hiddenTargets = [
  "c", "clojure", "csharp", "dart", "fsharp", "http", "java", "julia", "kotlin", "node", "objc", "ocaml", "php", "powershell", "r",
  "ruby", "rust", "swift",
];
const hiddenClients = {
  ...Object.fromEntries(hiddenTargets.map((target) => [target, true])),
  shell: ["httpie", "wget"],
  js: ["axios", "jquery", "ofetch", "xhr"],
  python: ["aiohttp", "httpx_async", "httpx_sync"],
};

// plain makes the first request of each operation the one without optional parameters.
// Scalar would send the first value of each enum, and the defaults. It suggests them anyway.
// It would also call empty numbers too small, unless their minimum is an exclusive one.
export function plain(document) {
  for (const { get } of Object.values(document.paths)) {
    for (const parameter of get.parameters ?? []) {
      const { in: place, required, schema } = parameter;
      if (place !== "query" || required) continue;
      parameter.example ??= "";
      if (schema.type === "integer" && schema.minimum > 0) {
        schema.exclusiveMinimum = schema.minimum - 1;
        delete schema.minimum;
      }
    }
  }
  return document;
}

export const configuration = ({ content, key, server, dark }) => ({
  content,
  authentication: key ? { preferredSecurityScheme: "apiKey", securitySchemes: { apiKey: { token: key } } } : undefined,
  servers: [{ url: server, description: messages.thisServer }],
  hiddenClients,
  defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
  forceDarkModeState: dark ? "dark" : "light",
  hideDarkModeToggle: true,
  theme: "none", // see scalar.css
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true, hideAddApi: true },
  mcp: { disabled: true },
  showDeveloperTools: "never",
  hideClientButton: true,
  persistAuth: false,
  documentDownloadType: "none", // the page links to it
});
