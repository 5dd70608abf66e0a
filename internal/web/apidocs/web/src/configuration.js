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

export const configuration = ({ url, key, server, dark }) => ({
  url,
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
