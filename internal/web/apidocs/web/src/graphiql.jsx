// The full editor of the explorer: GraphiQL with the server's schema.
import { useEffect } from "react";
import { createRoot } from "react-dom/client";
import { buildSchema } from "graphql";
import { GraphiQL, HISTORY_PLUGIN } from "graphiql";
import { useGraphiQL, useGraphiQLActions, useMonaco, useOperationsEditorState, useVariablesEditorState } from "@graphiql/react";
import { HistoryStore } from "@graphiql/toolkit";
import { explorerPlugin } from "@graphiql/plugin-explorer";
import "graphiql/graphiql.css";
import "@graphiql/react/style.css";
import "@graphiql/plugin-doc-explorer/style.css";
import "@graphiql/plugin-history/style.css";
import "@graphiql/plugin-explorer/style.css";
import "./graphiql.css";
import { applyFixes, explorerFixes } from "./fixes.js";
import { messages } from "./messages.js";
import { isDark, onSchemeChange } from "./scheme.js";
import { historyLength, isRepeated } from "./storage.js";
import { defineThemes } from "./theme.js";

HistoryStore.prototype.shouldSaveQuery = (query, variables, headers, last) => Boolean(query) && !isRepeated(query, variables, last);

const queryBuilder = explorerPlugin({ showAttribution: false, title: messages.buildQuery });
queryBuilder.title = messages.buildQuery;
const plugins = [queryBuilder, HISTORY_PLUGIN];
// Next to the plugin, the query and the result need space for their lines.
const isWide = matchMedia("(min-width: 90rem)").matches;

// PageControls connects the editors with the controls around them.
function PageControls({ data, controls, before }) {
  const { addTab } = useGraphiQLActions();
  const queryEditor = useGraphiQL((state) => state.queryEditor);
  const variableEditor = useGraphiQL((state) => state.variableEditor);
  const responseEditor = useGraphiQL((state) => state.responseEditor);
  const [query] = useOperationsEditorState();
  const [variables] = useVariablesEditorState();
  const monaco = useMonaco((state) => state.monaco);

  useEffect(() => void (monaco && defineThemes(monaco)), [monaco]);

  useEffect(() => controls.show(query, variables), [controls, query, variables]);

  useEffect(() => {
    if (!queryEditor || !variableEditor) return;
    controls.open = (example) => {
      const known = [...data.examples.map(({ query }) => query), ""];
      if (!known.includes(queryEditor.getValue())) addTab(); // keep what the user wrote
      queryEditor.setValue(example);
      variableEditor.setValue("");
    };
    if (before.example) controls.open(before.example);
    before.example = "";
  }, [data, controls, before, queryEditor, variableEditor, addTab]);

  useEffect(() => {
    if (!queryEditor) return;
    queryEditor.updateOptions({ wordWrap: "on" });
    if (!before.hasFocus) return;
    queryEditor.setPosition(queryEditor.getModel().getPositionAt(before.caret));
    queryEditor.focus();
  }, [before, queryEditor]);

  useEffect(() => {
    responseEditor?.updateOptions({ placeholder: before.empty });
    if (responseEditor && before.result) responseEditor.setValue(before.result);
  }, [before, responseEditor]);
  return null;
}

// start replaces the plain editor. It throws an error if the schema is invalid.
export function start({ data, schema: text, fetcher, store, controls, plain }) {
  globalThis.MonacoEnvironment = {
    getWorker: (_, label) => new Worker(data.workers[label] ?? data.workers.editor, { type: "module", name: label }),
  };
  const schema = buildSchema(text);
  const { query, variables } = plain.elements;
  const before = {
    query: query.value,
    variables: variables.value,
    caret: query.selectionStart,
    hasFocus: document.activeElement === query,
    result: document.getElementById("result").textContent,
    empty: document.getElementById("result").dataset.empty,
    example: "",
  };
  controls.open = (example) => { before.example = example; }; // until the editors are there
  const container = document.getElementById("explorer");
  container.hidden = false;
  plain.remove();
  applyFixes(container, explorerFixes);
  const root = createRoot(container);
  const render = () => root.render(
    <GraphiQL
      fetcher={fetcher}
      schema={schema}
      plugins={plugins}
      visiblePlugin={isWide ? queryBuilder : undefined}
      storage={store}
      initialQuery={before.query}
      initialVariables={before.variables}
      defaultQuery={data.examples[0].query}
      defaultEditorToolsVisibility="variables"
      maxHistoryLength={historyLength}
      shouldPersistHeaders={false}
      showPersistHeadersSettings={false}
      forcedTheme={isDark() ? "dark" : "light"}
    >
      <GraphiQL.Logo>{" "}</GraphiQL.Logo>
      <PageControls data={data} controls={controls} before={before} />
    </GraphiQL>,
  );
  onSchemeChange(render);
  render();
}
