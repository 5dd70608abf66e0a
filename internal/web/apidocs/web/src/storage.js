// Local storage for GraphiQL.

// The history would store headers, and with them an API key that a user typed.
export const historyLength = 100; // runs
const histories = ["graphiql:queries", "graphiql:favorites"];

// storage leaves out headers when it stores the history.
export function storage() {
  return {
    get length() {
      return localStorage.length;
    },
    getItem: (name) => localStorage.getItem(name),
    setItem(name, value) {
      localStorage.setItem(name, histories.includes(name) ? withoutHeaders(value) : value);
    },
    removeItem: (name) => localStorage.removeItem(name),
    clear: () => localStorage.clear(),
  };
}

function withoutHeaders(text) {
  const history = JSON.parse(text);
  for (const items of Object.values(history)) {
    for (const item of items) delete item.headers;
  }
  return JSON.stringify(history);
}

// remember adds a run of the plain editor to the history.
export function remember(storage, query, variables) {
  try {
    const { queries } = JSON.parse(storage.getItem(histories[0]) ?? '{"queries":[]}');
    storage.setItem(histories[0], JSON.stringify({ queries: [...queries, { query, variables }].slice(-historyLength) }));
  } catch { /* storage is blocked or full */ }
}

// isRepeated reports whether a run repeats the last one of the history. GraphiQL also leaves
// out runs that differ from the last one only by variables, where that had none, or by the
// chosen operation.
export const isRepeated = (query, variables, last) => last?.query === query && (last.variables ?? "") === (variables ?? "");

// lastTab returns the query and variables of the tab that was open last, or null.
// GraphiQL itself restores only the query of the first tab.
export function lastTab(storage) {
  try {
    const { tabs, activeTabIndex } = JSON.parse(storage.getItem("graphiql:tabState"));
    const { query, variables } = tabs[Math.min(Math.max(activeTabIndex, 0), tabs.length - 1)];
    return { query: string(query), variables: string(variables) };
  } catch {
    return null; // missing or invalid
  }
}

function string(value) {
  if (typeof (value ?? "") !== "string") throw new TypeError("not a string");
  return value ?? ""; // null in a new tab
}
