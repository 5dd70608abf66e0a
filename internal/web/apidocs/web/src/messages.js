// The texts that the scripts of the explorer and the reference show.
const english = {
  buildQuery: "Build a query",
  cannotRun: (reason) => `Cannot be run: ${reason}`,
  code: "Code",
  codeCopied: "Copied",
  codeShown: "Shown below",
  copy: "Copy",
  cost: (units, limit) => `Cost: ${number(units)} of ${number(limit)} (limit per request)`,
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

const french = {
  buildQuery: "Construire une requête",
  cannotRun: (reason) => `Exécution impossible\u00a0: ${reason}`,
  code: "Code",
  codeCopied: "Code copié",
  codeShown: "Affiché ci-dessous",
  copy: "Copier",
  cost: (units, limit) => `Coût\u00a0: ${number(units)} sur ${number(limit)} (limite par requête)`,
  deprecated: "obsolète",
  editorFailed: "L’éditeur complet n’a pas pu être chargé. Vérifiez votre connexion et réessayez, ou rechargez la page.",
  editorLoading: "Chargement de l’éditeur complet…",
  lastRun: (units) => `dernière exécution\u00a0: ${number(units)}`,
  linkCopied: "Lien copié",
  linkShown: "Le lien est dans la barre d’adresse",
  operationType: "Type d’opération à ajouter",
  referenceFailed: "La référence interactive n’a pas pu être chargée. Vérifiez votre connexion et réessayez, ou rechargez la page.",
  referenceLoading: "Chargement de la référence interactive…",
  running: "Exécution en cours…",
  runFailed: "Le serveur est injoignable. Vérifiez votre connexion et réessayez.",
  subscription: "Les abonnements GraphQL ne fonctionnent que dans l’éditeur complet.",
  thisServer: "Ce serveur.",
  value: "Valeur",
  variablesInvalid: "Les variables doivent être du JSON valide.",
};

export const messages = globalThis.document?.documentElement.lang === "fr" ? french : english;

const number = (value) => Number(value).toLocaleString(document.documentElement.lang || "en");
