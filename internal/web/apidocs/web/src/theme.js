// GraphiQL's editor themes, with sufficient contrast on our background.
// Redefining a theme that is in use applies it at once.
const shared = {
  "editor.background": "#ffffff00",
  "scrollbar.shadow": "#ffffff00",
};

export function defineThemes(monaco) {
  monaco.editor.defineTheme("graphiql-LIGHT", {
    base: "vs",
    inherit: true,
    rules: [
      { token: "argument.identifier.gql", foreground: "#5146b3" },
      { token: "comment", foreground: "#446444" },
      { token: "number", foreground: "#066a45" },
    ],
    colors: {
      ...shared,
      ...withAccent("#0b6b50", "#0b6b5019", "#ffffff"),
      "editorLineNumber.foreground": "#5c5952",
      "editorLineNumber.activeForeground": "#1d1c1a",
      "editorLineNumber.dimmedForeground": "#5c5952",
    },
  });
  monaco.editor.defineTheme("graphiql-DARK", {
    base: "vs-dark",
    inherit: true,
    rules: [
      { token: "argument.identifier.gql", foreground: "#b4acff" },
      { token: "comment", foreground: "#94b894" },
      { token: "keyword", foreground: "#7fbdf0" },
    ],
    colors: {
      ...shared,
      ...withAccent("#5cc8a4", "#5cc8a419", "#1c1e1b"),
      "editorLineNumber.foreground": "#aaa79f",
      "editorLineNumber.activeForeground": "#eceae5",
      "editorLineNumber.dimmedForeground": "#aaa79f",
    },
  });
}

const withAccent = (accent, tint, paper) => ({
  "textLink.foreground": accent,
  "textLink.activeForeground": accent,
  "editorLink.activeForeground": accent,
  "editorHoverWidget.background": paper,
  "editorWidget.background": paper,
  "editorSuggestWidget.background": paper,
  "editorSuggestWidget.selectedBackground": tint,
  "editorSuggestWidget.selectedForeground": accent,
  "list.hoverBackground": tint,
  "list.highlightForeground": accent,
  "list.focusHighlightForeground": accent,
  "menu.background": paper,
  "quickInput.background": paper,
  "toolbar.hoverBackground": tint,
  focusBorder: accent,
});
