// Audits the public pages of a server with the demo catalog on Lighthouse's phone
// profile, prints the scores and fails below the goals. Lighthouse needs a newer
// Node.js than many machines have, so package.json includes one.
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as chromeLauncher from "chrome-launcher";
import lighthouse from "lighthouse";

const [binary, ...chosen] = process.argv.slice(2);

const pages = [
  "", "tools", "tools?category=code", "tools/plume", "search?q=code", "compare/plume/ecritoire-cie", "comparisons", "comparisons/plume-vs-ecritoire-cie",
  "categories", "categories/code", "changes", "prices", "trends", "graveyard", "graveyard/buvard", "releases", "guides", "guides/quick-start", "changelog",
  "status", "method", "pricing", "about", "terms", "privacy", "licence", "contact", "login", "files", "q", "q/palmares/growth", "docs", "explorer",
];
const french = { comparisons: "comparatifs", graveyard: "cimetiere" }; // sections that are named differently
const noIndex = ["login", "search?q=code"]; // search engines leave these out on purpose, so Lighthouse's SEO score does not apply
const apps = ["docs", "explorer"]; // large scripts that other pages do not have

const data = await mkdtemp(join(tmpdir(), "lighthouse-"));
const server = spawn(binary, ["serve", "--demo"], { env: { ...process.env, PALMARES_LISTEN: "127.0.0.1:0", PALMARES_DATA_DIR: data } });
const base = await new Promise((resolve, reject) => {
  let text = "";
  server.stdout.on("data", (chunk) => {
    text += chunk;
    const found = text.match(/(http:\/\/\S+?)\/ +website/);
    if (found) resolve(found[1]);
  });
  server.on("exit", (code) => reject(new Error(`the server exited with code ${code}`)));
});

// audit starts a new browser for each page, because one hangs after about fifty pages.
async function audit(url) {
  const chrome = await chromeLauncher.launch({ chromePath: process.env.CHROMIUM ?? "/usr/bin/chromium", chromeFlags: ["--headless=new", "--no-sandbox"] });
  try {
    return await lighthouse(url, { port: chrome.port, logLevel: "silent" });
  } finally {
    await chrome.kill();
  }
}

let below = 0;
try {
  console.log("page".padEnd(44), "perf  a11y  best  SEO");
  for (const page of chosen.length > 0 ? chosen : pages) {
    for (const language of ["en", "fr"]) {
      const path = language === "fr" ? page.replace(/^\w+/, (section) => french[section] ?? section) : page;
      const result = await audit(`${base}/${language}/${path}`);
      const scores = ["performance", "accessibility", "best-practices", "seo"].map((name) => Math.round(100 * result.lhr.categories[name].score));
      const goals = [apps.includes(page) ? 80 : 95, 95, 95, noIndex.includes(page) ? 0 : 95];
      const failed = scores.some((score, i) => score < goals[i]);
      if (failed) below++;
      console.log(`/${language}/${path}`.padEnd(44), ...scores.map((score) => String(score).padStart(4) + " "), failed ? "below the goal" : "");
      if (failed) {
        for (const { title, score, scoreDisplayMode, displayValue } of Object.values(result.lhr.audits)) {
          if (score !== null && score < 0.9 && scoreDisplayMode !== "informative") console.log("   ", title, displayValue ?? "");
        }
      }
    }
  }
} finally {
  server.removeAllListeners("exit");
  server.kill();
  await rm(data, { recursive: true, force: true });
}
if (below > 0) {
  console.log(`${below} pages are below the goal`);
  process.exit(1);
}
