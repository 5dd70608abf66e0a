// Tells which call of REST a document equals, if it is one of the operations
// that the paths of REST stand for.
import { parse, print } from "graphql";

export function rest({ base, operations }) {
  const known = new Map(operations.map((operation) => [normal(operation.query), operation]));
  const line = document.getElementById("same");
  const call = document.getElementById("same-call");
  const curl = document.getElementById("same-curl");
  return {
    // tidy writes an operation of ours the way that people do.
    tidy: (query) => (known.has(normal(query)) ? print(parse(query)) : query),

    show(query, variables) {
      const operation = known.get(normal(query));
      const path = operation && address(operation, values(variables));
      line.hidden = !path;
      if (!path) return;
      call.textContent = "GET " + path;
      curl.textContent = (operation.keyed ? 'curl -H "Authorization: Bearer $API_KEY" ' : "curl ") + quote(base + path);
    },
  };
}

// normal writes a document in the one way, whatever its layout, comments and
// order of fragments; null for what is none.
function normal(text) {
  try {
    const { kind, definitions } = parse(text, { noLocation: true });
    const name = (definition) => definition.kind + (definition.name?.value ?? "");
    return print({ kind, definitions: definitions.toSorted((a, b) => (name(a) < name(b) ? -1 : 1)) });
  } catch {
    return null;
  }
}

function values(text) {
  try {
    return text.trim() ? JSON.parse(text) : {};
  } catch {
    return null;
  }
}

// address fills a path with the variables, defaults left out; null if that
// cannot be done.
function address({ path, parameters }, variables) {
  if (!variables || typeof variables !== "object") return null;
  const query = new URLSearchParams();
  for (const { name, inPath, preset } of parameters) {
    let value = variables[name] ?? null;
    if (Array.isArray(value) && value.length === 1) [value] = value; // REST takes one of each
    if (value !== null && typeof value === "object") return null;
    if (inPath) {
      if (!value) return null;
      path = path.replace(`{${name}}`, () => encodeURIComponent(value));
    } else if (value !== null && value !== preset) {
      query.set(name, value);
    }
  }
  return query.size ? `${path}?${query}` : path;
}

// quote writes a word for a shell.
const quote = (word) => "'" + word.replaceAll("'", "'\\''") + "'";
