// The texts that the scripts of the explorer and the reference show.
export const messages = {
  buildQuery: "Build a query",
  cannotRun: (reason) => `Cannot be run: ${reason}`,
  code: "Code",
  codeCopied: "Copied",
  codeShown: "Shown below",
  copy: "Copy",
  cost: (units, limit) => `Cost: ${number(units)} of ${number(limit)}`,
  deprecated: "deprecated",
  editorFailed: "The full editor could not be loaded. Check your connection and try again, or reload the page.",
  editorLoading: "Loading the full editor…",
  lastRun: (units) => `last run: ${number(units)}`,
  linkCopied: "Link copied",
  linkShown: "Link is in the address bar",
  operationType: "Type of operation to add",
  referenceFailed: "The interactive reference could not be loaded. Check your connection and try again, or reload the page.",
  referenceLoading: "Loading the interactive reference…",
  running: "Running…",
  runFailed: "The server could not be reached. Check your connection and try again.",
  subscription: "Subscriptions run in the full editor only.",
  thisServer: "This server.",
  value: "Value",
  variablesInvalid: "The variables must be valid JSON.",
};

const number = (value) => Number(value).toLocaleString(document.documentElement.lang || "en");
