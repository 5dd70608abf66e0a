// What GraphiQL keeps in the browser, but for headers: its history would write
// down the key that is in them.
const lists = ["graphiql:queries", "graphiql:favorites"];

export function storage(headers) {
  return {
    get length() {
      return localStorage.length;
    },
    getItem(name) {
      const value = localStorage.getItem(name);
      return lists.includes(name) && value ? withHeaders(value, headers || undefined) : value;
    },
    setItem(name, value) {
      localStorage.setItem(name, lists.includes(name) ? withHeaders(value, undefined) : value);
    },
    removeItem: (name) => localStorage.removeItem(name),
    clear: () => localStorage.clear(),
  };
}

function withHeaders(text, headers) {
  const list = JSON.parse(text);
  for (const items of Object.values(list)) {
    for (const item of items) item.headers = headers;
  }
  return JSON.stringify(list);
}
