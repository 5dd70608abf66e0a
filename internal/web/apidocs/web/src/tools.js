// The tools above the editor: the cost of the query, a link to it, code that sends
// it, and saving it as an endpoint.
import { parse } from "./language.js";
import { messages } from "./messages.js";

const pause = 500; // milliseconds without typing, before the cost is looked up

export function queryTools({ base, costPath, key }) {
  const cost = document.getElementById("cost");
  const share = document.getElementById("share");
  const snippets = document.getElementById("snippets");
  const snippet = document.getElementById("snippet");
  const save = document.getElementById("save");
  let current = { query: "", variables: "" };
  let estimate = "", last = "", timer;

  const showCost = () => { cost.textContent = [estimate, last].filter(Boolean).join(" · "); };

  async function price() {
    const { query, variables } = current;
    if (!query.trim()) {
      estimate = "";
      return showCost();
    }
    const response = await fetch(costPath, { method: "POST", headers: { "Content-Type": "application/json" }, body: body(current) });
    if (response.status === 429) return void (timer = setTimeout(price, 4 * pause));
    const { cost: units, limit, error } = await response.json();
    if (query !== current.query || variables !== current.variables) return; // edited meanwhile
    estimate = error ? messages.cannotRun(error) : messages.cost(units, limit);
    showCost();
  }

  share.addEventListener("click", async () => {
    const link = new URL(location.pathname, base);
    link.searchParams.set("query", current.query);
    if (current.variables.trim()) link.searchParams.set("variables", current.variables);
    history.replaceState(null, "", link.pathname + link.search);
    confirm(share, await copied(location.href) ? messages.linkCopied : messages.linkShown);
  });

  snippets.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { language } = snippets.elements;
    snippet.textContent = languages[language.value](base + "/graphql", body(current), key !== "");
    snippet.hidden = false;
    confirm(event.submitter, await copied(snippet.textContent) ? messages.codeCopied : messages.codeShown);
  });

  save?.addEventListener("submit", (event) => {
    save.elements.query.value = current.query;
    save.elements.variables.value = current.variables;
    if (key !== "") return;
    try { // the user has to sign in first
      sessionStorage.setItem("draft", JSON.stringify(current));
      event.preventDefault();
      location.assign(`${save.action}?draft=1`);
    } catch { /* storage is blocked: the server says what to do */ }
  });

  return {
    // show sets the query and variables that the controls use.
    show(query = "", variables = "") {
      if (query === current.query && variables === current.variables) return;
      current = { query, variables };
      clearTimeout(timer);
      timer = setTimeout(price, pause);
    },
    // ran shows the cost of a query that was sent.
    ran(units) {
      if (units === null) return;
      last = messages.lastRun(units);
      showCost();
    },
  };
}

// body is the request for a query, without variables if they are not valid.
function body({ query, variables }) {
  let values;
  try {
    values = variables.trim() ? JSON.parse(variables) : undefined;
  } catch {
    values = undefined;
  }
  return JSON.stringify({ query: compact(query), variables: values });
}

// compact removes comments and layout, which would only make code samples longer.
function compact(query) {
  try {
    parse(query, { noLocation: true });
  } catch {
    return query;
  }
  return query.includes('"""') ? query : query.replace(/^\s*#.*$/gm, "").replace(/\s*\n\s*/g, "\n").trim();
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

function confirm(button, text) {
  const label = button.dataset.label ?? button.textContent;
  button.dataset.label = label;
  button.textContent = text;
  setTimeout(() => { button.textContent = label; }, 2000);
}

const shell = (text) => "'" + text.replaceAll("'", "'\\''") + "'";

// languages have code that sends a request. It reads the key from the environment.
const languages = {
  curl: (url, body, keyed) =>
    `curl -s ${shell(url)} -H 'Content-Type: application/json'${keyed ? ' -H "Authorization: Bearer $API_KEY"' : ""} -d ${shell(body)}`,

  fetch: (url, body, keyed) => `const response = await fetch(${JSON.stringify(url)}, {
  method: "POST",
  headers: { "Content-Type": "application/json"${keyed ? ", Authorization: `Bearer ${process.env.API_KEY}`" : ""} },
  body: ${JSON.stringify(body)},
});
const { data, errors } = await response.json();
console.log(JSON.stringify(data), errors ?? "");`,

  python: (url, body, keyed) => `import json${keyed ? ", os" : ""}, urllib.request

request = urllib.request.Request(
    ${JSON.stringify(url)},
    data=${JSON.stringify(body)}.encode(),
    headers={"Content-Type": "application/json"${keyed ? ', "Authorization": "Bearer " + os.environ["API_KEY"]' : ""}},
)
with urllib.request.urlopen(request) as response:
    print(json.dumps(json.load(response)["data"], ensure_ascii=False))`,

  go: (url, body, keyed) => `package main

import (
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	request, err := http.NewRequest("POST", ${JSON.stringify(url)}, strings.NewReader(${JSON.stringify(body)}))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", "application/json")
${keyed ? '	request.Header.Set("Authorization", "Bearer "+os.Getenv("API_KEY"))\n' : ""}	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	io.Copy(os.Stdout, response.Body)
}`,
};
