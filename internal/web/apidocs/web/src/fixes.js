// Fixes for the HTML of GraphiQL and Scalar, mostly for accessibility.
import { messages } from "./messages.js";

// applyFixes applies fixes (functions by CSS selector) now and after each change.
export function applyFixes(root, fixes) {
  const apply = () => {
    for (const [selector, fix] of Object.entries(fixes)) {
      root.querySelectorAll(selector).forEach(fix);
    }
  };
  new MutationObserver(apply).observe(root, { childList: true, subtree: true, attributes: true, attributeFilter: ["aria-selected", "role"] });
  apply();
}

// set changes an attribute only if its value differs, because every change
// triggers the observer again.
function set(element, name, value) {
  if (value === null ? element.hasAttribute(name) : element.getAttribute(name) !== value) {
    value === null ? element.removeAttribute(name) : element.setAttribute(name, value);
  }
}

const shown = new WeakMap(); // text by title of the documentation

export const explorerFixes = {
  // The documentation starts at the top, also after another type or pane was
  // scrolled.
  ".graphiql-doc-explorer-title": (title) => {
    if (shown.get(title) === title.textContent) return;
    shown.set(title, title.textContent);
    title.closest(".graphiql-plugin").scrollTop = 0;
  },
  // A tab must not contain buttons, so the tabs become a list of buttons.
  ".graphiql-tabs": (list) => set(list, "role", null),
  ".graphiql-tabs > li": (item) => {
    const selected = item.getAttribute("aria-selected");
    if (selected !== null) {
      set(item.querySelector("button"), "aria-current", selected === "true" ? "true" : null);
      set(item, "aria-selected", null);
    }
    set(item, "role", null);
  },
  // The visible label, which is the query's name, must be the accessible name.
  ".graphiql-history-item-label": (button) => set(button, "aria-label", null),
  "#graphiql-session": (panel) => set(panel, "role", "group"),
  ".graphiql-explorer-actions select": (select) => set(select, "aria-label", messages.operationType),
  ".graphiql-explorer-root select:not([aria-label])": (select) => set(select, "aria-label", messages.value),
  ".graphiql-explorer-root input:not([aria-label])": (field) => set(field, "aria-label", field.placeholder || messages.value),
};

export const referenceFixes = {
  // A landmark for each path would be too many, some with the same name.
  "#reference [role=region]": (section) => set(section, "role", "group"),
  "section.contents[aria-labelledby], section[aria-label^=Notifications]": (section) => set(section, "role", "group"),
  // The name has to contain what is written on the button.
  ".show-more[aria-label]": (button) => {
    const text = button.textContent.trim(), label = button.getAttribute("aria-label");
    if (!label.includes(text)) set(button, "aria-label", text + ": " + label);
  },
  ".scalar-code-copy:not([aria-label])": (button) => set(button, "aria-label", messages.copy),
  // Long paths make the list of a resource's paths scroll on phones.
  ".endpoints:not([tabindex])": (list) => set(list, "tabindex", "0"),
  // Responses need a name and must be scrollable by keyboard.
  ".cm-content:not([aria-label])": (text) => set(text, "aria-label", messages.code),
  ".cm-scroller[tabindex='-1']": (text) => set(text, "tabindex", "0"),
  "[class*='copy-button'][aria-controls]": (button) => document.getElementById(button.getAttribute("aria-controls")) || set(button, "aria-controls", null),
  "button[role=alert]": (button) => set(button, "role", null),
  "button[role=none]": (button) => set(button, "role", null),
  // A combobox must have aria-expanded, which this one lacks.
  ".code-input-lite__editor[role=combobox]": (field) => set(field, "role", "textbox"),
};
