package lang

// The explorer and the reference.
var frenchWorkbench = map[Message]string{
	"Write and run GraphQL queries on the catalog in your browser, with examples, costs and code to copy.": "Écrivez et exécutez des requêtes GraphQL sur le catalogue dans votre navigateur, avec des exemples, leur coût et du code à copier.",
	"Examples":          "Exemples",
	"Open example":      "Ouvrir l’exemple",
	"Share query":       "Partager la requête",
	"Copy as":           "Copier en",
	"Copy code":         "Copier le code",
	"Save as endpoint":  "Enregistrer la requête",
	"REST equivalent:":  "Équivalent REST :",
	"Copy curl command": "Copier la commande curl",
	"Query":             "Requête",
	"Variables (JSON)":  "Variables (JSON)",
	"Open full editor":  "Ouvrir l’éditeur complet",
	`Autocompletion, documentation, a query builder, tabs and history. You can also read <a href="%s">the schema</a>.`: `Autocomplétion, documentation, générateur de requêtes, onglets et historique. Vous pouvez aussi lire <a href="%s">le schéma</a>.`,
	"Every REST endpoint with its parameters, responses and errors, and an example for each that you can run.":         "Chaque point d’accès REST avec ses paramètres, ses réponses et ses erreurs, et un exemple à exécuter pour chacun.",
	"Open interactive reference": "Ouvrir la référence interactive",
	"Contents":                   "Sommaire",
	"This server was built without the interactive reference. To include it, run <code>make assets</code> and <code>make build</code>, which require Node.js and npm.": "Ce serveur a été compilé sans la référence interactive. Pour l’inclure, lancez <code>make assets</code> et <code>make build</code>, qui nécessitent Node.js et npm.",
	"The reference is in English, like the API itself.": "La référence est en anglais, comme l’API elle-même.",
	"GraphQL schema": "Schéma GraphQL",
	`The schema of <code>/graphql</code>. You can also <a href="%s">view it as a file</a>.`:                                                               `Le schéma de <code>/graphql</code>. Vous pouvez aussi <a href="%s">le consulter sous forme de fichier</a>.`,
	"This server was built without the explorer. To include it, run <code>make assets</code> and <code>make build</code>, which require Node.js and npm.": "Ce serveur a été compilé sans l’explorateur. Pour l’inclure, lancez <code>make assets</code> et <code>make build</code>, qui nécessitent Node.js et npm.",
	"This path cannot be opened in the explorer.":  "Cette adresse ne peut pas être ouverte dans l’explorateur.",
	"This path is deprecated.":                     "Cette adresse est obsolète.",
	"The variables in the URL are not valid JSON.": "Les variables de l’URL ne sont pas du JSON valide.",
}
