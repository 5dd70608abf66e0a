// Sends operations to the server. Subscriptions use server-sent events.
const url = "/graphql";

// newFetcher sends the account's key, which no editor shows, unless the headers of a query
// have another one. It calls ran with the cost of each query.
export function newFetcher(key, ran) {
  return (params, { documentAST, headers: own = {} } = {}) => {
    const hasKey = Object.keys(own).some((name) => name.toLowerCase() === "authorization");
    const headers = key && !hasKey ? { ...own, Authorization: `Bearer ${key}` } : own;
    return isSubscription(params, documentAST) ? subscribe(params, headers) : execute(params, headers, ran);
  };
}

export function isSubscription({ operationName }, document) {
  const operations = document?.definitions.filter(({ kind }) => kind === "OperationDefinition") ?? [];
  const chosen = operations.find(({ name }) => name?.value === operationName) ?? operations[0];
  return chosen?.operation === "subscription";
}

function post(params, headers, accept) {
  return fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: accept, ...headers },
    body: JSON.stringify(params),
  });
}

async function execute(params, headers, ran) {
  const response = await post(params, headers, "application/json");
  ran(response.headers.get("X-GraphQL-Cost"));
  return response.json();
}

async function* subscribe(params, headers) {
  const response = await post(params, headers, "text/event-stream");
  if (!response.headers.get("Content-Type")?.startsWith("text/event-stream")) {
    yield await response.json();
    return;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let text = ""; ; ) {
      const { done, value } = await reader.read();
      if (done) return;
      text += value;
      const events = text.split("\n\n");
      text = events.pop();
      for (const event of events) {
        const body = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n");
        if (body.trim()) yield JSON.parse(body);
      }
    }
  } finally {
    await reader.cancel();
  }
}
