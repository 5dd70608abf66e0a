// The interactive API reference: Scalar with the server's OpenAPI document.
import { createApiReference } from "@scalar/api-reference";
import "./scalar.css";
import { configuration, plain } from "./configuration.js";
import { applyFixes, referenceFixes } from "./fixes.js";
import { isDark, onSchemeChange } from "./scheme.js";

// start replaces the HTML of the reference. With an anchor, it opens the client for
// this operation.
export async function start({ document: url, key }, anchor) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`got status ${response.status}`);
  const content = plain(await response.json());
  const current = () => configuration({ content, key, server: location.origin, dark: isDark() });
  document.getElementById("operations").remove();
  document.getElementById("reference").hidden = false;
  if (anchor) history.replaceState(null, "", "#" + anchor);
  else scrollTo(0, 0);
  applyFixes(document.body, referenceFixes);
  const reference = createApiReference("#reference", current());
  onSchemeChange(() => reference.updateConfiguration(current()));
  if (anchor) openClient(`[id='api-1/${anchor}'] .show-api-client-button`);
}

// openClient clicks a button as soon as Scalar has rendered it.
function openClient(selector) {
  const observer = new MutationObserver(click);
  function click() {
    const button = document.querySelector(selector);
    if (!button) return;
    observer.disconnect();
    button.click();
  }
  observer.observe(document.getElementById("reference"), { childList: true, subtree: true });
}
