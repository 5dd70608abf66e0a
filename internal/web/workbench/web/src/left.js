// What was open when somebody last left, where the address asks for nothing.
// GraphiQL itself opens the query of the first tab only, and no variables.
export function left(storage) {
  try {
    const { tabs, activeTabIndex } = JSON.parse(storage.getItem("graphiql:tabState"));
    const { query, variables } = tabs[Math.min(Math.max(activeTabIndex, 0), tabs.length - 1)];
    return { query: text(query), variables: text(variables) };
  } catch {
    return {}; // nothing, or nothing that can be read
  }
}

// text is "" for a tab in which nobody wrote anything yet.
function text(value) {
  if (typeof (value ?? "") !== "string") throw new TypeError("no text");
  return value ?? "";
}
