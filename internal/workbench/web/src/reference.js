// The reference: Scalar on our own document, with all that would leave this
// host switched off.
import { createApiReference } from "@scalar/api-reference";
import "./reference.css";
import { mend } from "./mend.js";
import { referenceMends } from "./mends.js";

const { document: url } = JSON.parse(document.getElementById("workbench").textContent);
const scheme = matchMedia("(prefers-color-scheme: dark)");

// Four ways to call: curl, JavaScript, Python and Go.
const others = [
  "c", "clojure", "csharp", "dart", "fsharp", "http", "java", "julia", "kotlin", "node", "objc", "ocaml", "php", "powershell", "r",
  "ruby", "rust", "swift",
];
const hiddenClients = {
  ...Object.fromEntries(others.map((target) => [target, true])),
  shell: ["httpie", "wget"],
  js: ["axios", "jquery", "ofetch", "xhr"],
  python: ["aiohttp", "httpx_async", "httpx_sync"],
};

const configuration = () => ({
  url,
  servers: [{ url: location.origin, description: "This server." }],
  hiddenClients,
  defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
  forceDarkModeState: scheme.matches ? "dark" : "light",
  hideDarkModeToggle: true,
  theme: "none", // ours is in reference.css
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true, hideAddApi: true },
  mcp: { disabled: true },
  showDeveloperTools: "never",
  hideClientButton: true,
  persistAuth: false,
  documentDownloadType: "none", // the page links to it
});

mend(document.body, referenceMends);
const reference = createApiReference("#reference", configuration());
scheme.addEventListener("change", () => reference.updateConfiguration(configuration()));
