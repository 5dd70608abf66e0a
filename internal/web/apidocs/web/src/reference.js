// The API reference: HTML, and Scalar on demand.
import { load } from "./load.js";
import { messages } from "./messages.js";

const data = JSON.parse(document.getElementById("workbench").textContent);
const status = document.getElementById("status");
const buttons = document.querySelectorAll("[data-open]");

// open replaces the page with Scalar, at an operation if an anchor is given.
async function open(anchor) {
  for (const button of buttons) button.disabled = true;
  status.textContent = messages.referenceLoading;
  // Our Content-Security-Policy forbids eval, and zod would otherwise try it.
  globalThis.__zod_globalConfig = { jitless: true };
  try {
    const { start } = await load(data.app);
    await start(data, anchor);
    status.textContent = "";
    buttons[0].remove();
  } catch {
    for (const button of buttons) button.disabled = false;
    status.textContent = messages.referenceFailed;
  }
}

for (const button of buttons) button.addEventListener("click", () => open(button.dataset.open));
