// Accessibility fixes for the HTML of GraphiQL and Scalar.

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

export const explorerFixes = {
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
  ".graphiql-explorer-actions select": (select) => set(select, "aria-label", "Type of operation to add"),
  ".graphiql-explorer-root select:not([aria-label])": (select) => set(select, "aria-label", "Value"),
  ".graphiql-explorer-root input:not([aria-label])": (field) => set(field, "aria-label", field.placeholder || "Value"),
};

export const referenceFixes = {
  // A landmark for each path would be too many, some with the same name.
  "#reference [role=region]": (section) => set(section, "role", "group"),
  "section.contents[aria-labelledby], section[aria-label^=Notifications]": (section) => set(section, "role", "group"),
  ".scalar-code-copy:not([aria-label])": (button) => set(button, "aria-label", "Copy"),
  // Long paths make the list of a resource's paths scroll on phones.
  ".endpoints:not([tabindex])": (list) => set(list, "tabindex", "0"),
  // Responses need a name and must be scrollable by keyboard.
  ".cm-content:not([aria-label])": (text) => set(text, "aria-label", "Code"),
  ".cm-scroller[tabindex='-1']": (text) => set(text, "tabindex", "0"),
  "[class*='copy-button'][aria-controls]": (button) => document.getElementById(button.getAttribute("aria-controls")) || set(button, "aria-controls", null),
  "button[role=none]": (button) => set(button, "role", null),
  // A combobox must have aria-expanded, which this one lacks.
  ".code-input-lite__editor[role=combobox]": (field) => set(field, "role", "textbox"),
};
