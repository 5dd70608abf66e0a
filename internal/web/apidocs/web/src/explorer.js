// The explorer: GraphiQL, and a plain editor until it is loaded or if it cannot be. Neither
// runs a query by itself.
import { parse } from "./language.js";
import { isSubscription, newFetcher } from "./fetcher.js";
import { load } from "./load.js";
import { messages } from "./messages.js";
import { indented, restEquivalent } from "./rest.js";
import { lastTab, remember, storage } from "./storage.js";
import { queryTools } from "./tools.js";

const data = JSON.parse(document.getElementById("workbench").textContent);
const plain = document.getElementById("plain");
const examples = document.getElementById("examples");
const status = document.getElementById("status");
const result = document.getElementById("result");
const full = document.getElementById("full");
const { query, variables } = plain.elements;

const equivalent = restEquivalent(data);
const tools = queryTools(data);
const fetcher = newFetcher(data.key, tools.ran);
const store = storage();

// controls connect the editor in use with the controls of the page.
const controls = {
  show(newQuery, newVariables) {
    equivalent.show(newQuery, newVariables);
    tools.show(newQuery, newVariables);
  },
  open(newQuery, newVariables = "") {
    query.value = newQuery;
    variables.value = newVariables;
    showCurrent();
  },
};
const showCurrent = () => controls.show(query.value, variables.value);

async function run() {
  let values;
  try {
    values = variables.value.trim() ? JSON.parse(variables.value) : undefined;
  } catch {
    return void (status.textContent = messages.variablesInvalid);
  }
  const params = { query: query.value, variables: values };
  if (isSubscription(params, parsed(query.value))) return void (status.textContent = messages.subscription);
  status.textContent = messages.running;
  remember(store, params.query, variables.value);
  try {
    result.textContent = JSON.stringify(await fetcher(params), null, 2);
    result.scrollTop = 0;
    status.textContent = "";
  } catch {
    status.textContent = messages.runFailed;
  }
}

// parsed returns undefined for an invalid query: the server says what is wrong.
function parsed(text) {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

async function openFull() {
  if (full.disabled) return;
  full.disabled = true;
  status.textContent = messages.editorLoading;
  try {
    const [{ start }, schema] = await Promise.all([load(data.editor), fetchSchema()]);
    start({ data, schema, fetcher, store, controls, plain });
  } catch {
    full.disabled = false;
    status.textContent = messages.editorFailed;
  }
}

async function fetchSchema() {
  const response = await fetch(data.schema);
  if (!response.ok) throw new Error(`got status ${response.status}`);
  return response.text();
}

plain.addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
plain.addEventListener("input", showCurrent);
plain.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) plain.requestSubmit();
});
examples.addEventListener("submit", (event) => {
  event.preventDefault();
  controls.open(data.examples[examples.elements.example.value].query);
});
full.addEventListener("click", openFull);

const last = lastTab(store);
if (data.query) controls.open(equivalent.format(data.query), indented(data.variables));
else if (last) controls.open(last.query, last.variables);
else showCurrent();
openFull();
