// The explorer: GraphiQL on our own schema, beside what the server's page
// shows. Nothing runs before somebody says so.
import { useEffect } from "react";
import { createRoot } from "react-dom/client";
import { buildSchema } from "graphql";
import { GraphiQL, HISTORY_PLUGIN } from "graphiql";
import { useGraphiQL, useGraphiQLActions, useMonaco, useOperationsEditorState, useVariablesEditorState } from "@graphiql/react";
import { explorerPlugin } from "@graphiql/plugin-explorer";
import "graphiql/graphiql.css";
import "@graphiql/react/style.css";
import "@graphiql/plugin-doc-explorer/style.css";
import "@graphiql/plugin-history/style.css";
import "@graphiql/plugin-explorer/style.css";
import "./explorer.css";
import { fetcher } from "./fetcher.js";
import { storage } from "./storage.js";
import { left } from "./left.js";
import { dress } from "./theme.js";
import { rest } from "./rest.js";
import { mend } from "./mend.js";
import { explorerMends } from "./mends.js";

const data = JSON.parse(document.getElementById("workbench").textContent);

globalThis.MonacoEnvironment = {
  getWorker: (_, label) => new Worker(data.workers[label] ?? data.workers.editor, { type: "module", name: label }),
};

const build = explorerPlugin({ showAttribution: false, title: "Build a query" });
build.title = "Build a query";
const plugins = [build, HISTORY_PLUGIN];
const roomy = matchMedia("(min-width: 60rem)").matches;
const scheme = matchMedia("(prefers-color-scheme: dark)");
const examples = document.getElementById("examples");
const same = rest(data);
const kept = storage(data.headers);
const opened = data.query ? { query: same.tidy(data.query), variables: data.variables } : left(kept);

// Beside ties the editors to what is on the page around them.
function Beside() {
  const { addTab, setTheme } = useGraphiQLActions();
  const queryEditor = useGraphiQL((state) => state.queryEditor);
  const variableEditor = useGraphiQL((state) => state.variableEditor);
  const [query] = useOperationsEditorState();
  const [variables] = useVariablesEditorState();

  const monaco = useMonaco((state) => state.monaco);

  useEffect(() => void (monaco && dress(monaco)), [monaco]);

  useEffect(() => same.show(query, variables), [query, variables]);

  useEffect(() => {
    if (!queryEditor || !variableEditor) return;
    const open = (event) => {
      event.preventDefault();
      const known = [...data.examples.map(({ query }) => query), ""];
      if (!known.includes(queryEditor.getValue())) addTab(); // somebody wrote it
      queryEditor.setValue(data.examples[examples.elements.example.value].query);
      variableEditor.setValue("");
    };
    examples.addEventListener("submit", open);
    examples.hidden = false;
    return () => examples.removeEventListener("submit", open);
  }, [queryEditor, variableEditor, addTab]);

  useEffect(() => {
    const follow = () => setTheme(null);
    scheme.addEventListener("change", follow);
    return () => scheme.removeEventListener("change", follow);
  }, [setTheme]);
  return null;
}

const place = document.getElementById("explorer");
mend(place, explorerMends);
const sorry = () => {
  place.querySelector(".loading [role=status]").textContent = "The explorer cannot start, because its schema did not arrive. Load the page again.";
};
const schema = await fetch(data.schema).then((answer) => answer.text()).then((text) => buildSchema(text)).catch(sorry);
if (schema) createRoot(place).render(
  <GraphiQL
    fetcher={fetcher}
    schema={schema}
    plugins={plugins}
    visiblePlugin={roomy ? build : undefined}
    storage={kept}
    initialQuery={opened.query}
    initialVariables={opened.variables}
    initialHeaders={data.headers || undefined}
    defaultQuery={data.examples[0].query}
    defaultHeaders={data.headers || undefined}
    defaultEditorToolsVisibility={data.headers && !opened.variables ? "headers" : "variables"}
    shouldPersistHeaders={false}
    showPersistHeadersSettings={false}
    forcedTheme="system"
  >
    <GraphiQL.Logo>{" "}</GraphiQL.Logo>
    <Beside />
  </GraphiQL>,
);
