import { set } from "./mend.js";

// What GraphiQL has to be told.
export const explorerMends = {
  // A tab that holds the buttons to choose and to close it is none: these are
  // a list, and the button of the one that is open says so.
  ".graphiql-tabs": (list) => set(list, "role", null),
  ".graphiql-tabs > li": (item) => {
    const selected = item.getAttribute("aria-selected");
    if (selected !== null) {
      set(item.querySelector("button"), "aria-current", selected === "true" ? "true" : null);
      set(item, "aria-selected", null);
    }
    set(item, "role", null);
  },
  // Its name is the query's, not what a click on it does.
  ".graphiql-history-item-label": (button) => set(button, "aria-label", null),
  "#graphiql-session": (panel) => set(panel, "role", "group"),
  ".graphiql-explorer-actions select": (choice) => set(choice, "aria-label", "Kind of operation to add"),
  ".graphiql-explorer-root select:not([aria-label])": (choice) => set(choice, "aria-label", "Value"),
  ".graphiql-explorer-root input:not([aria-label])": (field) => set(field, "aria-label", field.placeholder || "Value"),
};

// What Scalar has to be told.
export const referenceMends = {
  // One for each path would be too many landmarks, some of the same name.
  "#reference [role=region]": (section) => set(section, "role", "group"),
  "section.contents[aria-labelledby], section[aria-label^=Notifications]": (section) => set(section, "role", "group"),
  ".scalar-code-copy:not([aria-label])": (button) => set(button, "aria-label", "Copy"),
  // An answer can be scrolled by keyboard, and has a name.
  ".cm-content:not([aria-label])": (text) => set(text, "aria-label", "Code"),
  ".cm-scroller[tabindex='-1']": (text) => set(text, "tabindex", "0"),
  "[class*='copy-button'][aria-controls]": (button) => document.getElementById(button.getAttribute("aria-controls")) || set(button, "aria-controls", null),
  "button[role=none]": (button) => set(button, "role", null),
  // It never says whether its list is open.
  ".code-input-lite__editor[role=combobox]": (field) => set(field, "role", "textbox"),
};
