// Shows the REST request that is equivalent to a query, if there is one.
import { parse, print } from "./language.js";
import { messages } from "./messages.js";

export function restEquivalent({ base, operations }) {
  const known = new Map(operations.map((operation) => [normalize(operation.query), operation]));
  const row = document.getElementById("same");
  const call = document.getElementById("same-call");
  const curl = document.getElementById("same-curl");
  return {
    // format indents the operation of a REST path.
    format: (query) => (known.has(normalize(query)) ? print(parse(query)) : query),

    show(query, variables) {
      const operation = known.get(normalize(query));
      const path = operation && restPath(operation, parseVariables(variables));
      row.hidden = !path;
      if (!path) return;
      call.textContent = "GET " + path + (operation.deprecated ? ` (${messages.deprecated})` : "");
      curl.textContent = (operation.keyed ? 'curl -H "Authorization: Bearer $API_KEY" ' : "curl ") + quote(base + path);
    },
  };
}

// indented makes JSON readable that programs wrote, unless that would change or swell it.
export function indented(text) {
  const value = text.length < 2_000 ? parseVariables(text) : null;
  return JSON.stringify(value) === text ? JSON.stringify(value, null, 2) : text;
}

// normalize makes documents comparable that differ only in layout, comments or
// the order of fragments. It returns null for invalid documents.
function normalize(text) {
  try {
    const { kind, definitions } = parse(text, { noLocation: true });
    const name = (definition) => definition.kind + (definition.name?.value ?? "");
    return print({ kind, definitions: definitions.toSorted((a, b) => (name(a) < name(b) ? -1 : 1)) });
  } catch {
    return null;
  }
}

function parseVariables(text) {
  try {
    return text.trim() ? JSON.parse(text) : {};
  } catch {
    return null;
  }
}

// restPath returns the path with the variables except defaults, or null if they
// cannot be expressed.
function restPath({ path, parameters }, variables) {
  if (!variables || typeof variables !== "object") return null;
  const query = new URLSearchParams();
  for (const { name, inPath, preset } of parameters) {
    let value = variables[name] ?? null;
    if (Array.isArray(value) && value.length === 1) [value] = value; // REST takes a single value
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

// quote quotes an argument for a shell.
const quote = (text) => "'" + text.replaceAll("'", "'\\''") + "'";
