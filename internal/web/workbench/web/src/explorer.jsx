// The explorer: GraphiQL with the server's schema. It never runs a query by itself.
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
import { newFetcher } from "./fetcher.js";
import { storage, lastTab } from "./storage.js";
import { defineThemes } from "./theme.js";
import { restEquivalent } from "./rest.js";
import { queryTools } from "./tools.js";
import { applyFixes, explorerFixes } from "./fixes.js";

const data = JSON.parse(document.getElementById("workbench").textContent);

globalThis.MonacoEnvironment = {
  getWorker: (_, label) => new Worker(data.workers[label] ?? data.workers.editor, { type: "module", name: label }),
};

const queryBuilder = explorerPlugin({ showAttribution: false, title: "Build a query" });
queryBuilder.title = "Build a query";
const plugins = [queryBuilder, HISTORY_PLUGIN];
const isWide = matchMedia("(min-width: 60rem)").matches;
const colorScheme = matchMedia("(prefers-color-scheme: dark)");
const examples = document.getElementById("examples");
const equivalent = restEquivalent(data);
const tools = queryTools(data);
const fetcher = newFetcher(tools.ran);
const store = storage(data.headers);
const initial = data.query ? { query: equivalent.format(data.query), variables: data.variables } : lastTab(store);

// PageControls connects the editors with the controls around them.
function PageControls() {
  const { addTab, setTheme } = useGraphiQLActions();
  const queryEditor = useGraphiQL((state) => state.queryEditor);
  const variableEditor = useGraphiQL((state) => state.variableEditor);
  const [query] = useOperationsEditorState();
  const [variables] = useVariablesEditorState();
  const monaco = useMonaco((state) => state.monaco);

  useEffect(() => void (monaco && defineThemes(monaco)), [monaco]);

  useEffect(() => {
    equivalent.show(query, variables);
    tools.show(query, variables);
  }, [query, variables]);

  useEffect(() => {
    if (!queryEditor || !variableEditor) return;
    const open = (event) => {
      event.preventDefault();
      const known = [...data.examples.map(({ query }) => query), ""];
      if (!known.includes(queryEditor.getValue())) addTab(); // keep what the user wrote
      queryEditor.setValue(data.examples[examples.elements.example.value].query);
      variableEditor.setValue("");
    };
    examples.addEventListener("submit", open);
    examples.hidden = false;
    return () => examples.removeEventListener("submit", open);
  }, [queryEditor, variableEditor, addTab]);

  useEffect(() => {
    const update = () => setTheme(null);
    colorScheme.addEventListener("change", update);
    return () => colorScheme.removeEventListener("change", update);
  }, [setTheme]);
  return null;
}

const root = document.getElementById("explorer");
applyFixes(root, explorerFixes);
const showError = () => {
  root.querySelector(".loading [role=status]").textContent = "The explorer could not load its schema. Reload the page to try again.";
};
const schema = await fetch(data.schema).then((response) => response.text()).then((text) => buildSchema(text)).catch(showError);
if (schema) createRoot(root).render(
  <GraphiQL
    fetcher={fetcher}
    schema={schema}
    plugins={plugins}
    visiblePlugin={isWide ? queryBuilder : undefined}
    storage={store}
    initialQuery={initial.query}
    initialVariables={initial.variables}
    initialHeaders={data.headers || undefined}
    defaultQuery={data.examples[0].query}
    defaultHeaders={data.headers || undefined}
    defaultEditorToolsVisibility={data.headers && !initial.variables ? "headers" : "variables"}
    shouldPersistHeaders={false}
    showPersistHeadersSettings={false}
    forcedTheme="system"
  >
    <GraphiQL.Logo>{" "}</GraphiQL.Logo>
    <PageControls />
  </GraphiQL>,
);
