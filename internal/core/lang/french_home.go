package lang

// The home page.
var frenchHome = map[Message]string{
	"retired tool|retired tools": "outil disparu|outils disparus",
	"Tested AI tools, as data":   "Les outils d’IA testés, données à l’appui",
	"Scores, prices, comparisons and history of tested AI tools: web pages that help you choose, and a free API for developers and AI agents.": "Notes, prix, comparatifs et historique d’outils d’IA testés : des pages pour choisir, une API gratuite pour les développeurs et les agents.",
	"%s, the catalog of tested AI tools": "%s, le catalogue des outils d’IA testés",
	"%s tests AI tools and publishes every score, price and comparison: on web pages that help you choose a tool, and through an API for developers and AI agents.": "%s teste les outils d’IA et publie chaque note, chaque prix et chaque comparatif : des pages pour bien choisir, une API pour les développeurs et les agents d’IA.",
	"Get a free API key": "Obtenir une clé d’API gratuite",
	"Try it now":         "Essayer maintenant",

	"tested":      "testés",
	"comparisons": "comparatifs",
	`Updated on <time datetime="%s">%s</time>, <a href="/releases">release %d</a>.`: `Mis à jour le <time datetime="%s">%s</time>, <a href="/releases">édition %d</a>.`,
	"Nothing has been published yet. Import a feed to fill the catalog.":            "Rien n’a encore été publié. Importez un flux pour remplir le catalogue.",

	"Your first request, no API key required": "Votre première requête, sans clé d’API",
	"Open the response":                       "Ouvrir la réponse",
	"GraphQL response":                        "Réponse GraphQL",
	`Add this server to <a href="/guides/agents">Claude, ChatGPT, Cursor or VS Code</a>, then ask:`: `Ajoutez ce serveur à <a href="/guides/agents">Claude, ChatGPT, Cursor ou VS Code</a>, puis demandez :`,
	"Which coding tools score 8 or more and cost less than €30 a month?":                            "Quels outils de code ont une note d’au moins 8 et coûtent moins de 30 € par mois ?",

	"Compare categories":             "Comparer les catégories",
	"Highest scores":                 "Les meilleures notes",
	"Show %d tool|Show all %d tools": "Voir le seul outil|Voir les %d outils",
	"Biggest movers":                 "Les notes qui bougent",
	"All price changes":              "Tout voir",

	"The editors of %s use each tool before giving it a score from 0 to 10, and rate how well its claims can be verified and how outdated it is.": "La rédaction de %s utilise chaque outil avant de lui donner une note de 0 à 10 ; elle évalue aussi la vérifiabilité de ses promesses et son obsolescence.",
	"Scores are revised when a tool changes, and every change stays in the history.":                                                              "Les notes sont revues quand l’outil évolue, et chaque changement reste dans l’historique.",
	"Read our method":                           "Lire notre méthode",
	"Score distribution":                        "Répartition des notes",
	"Number of tools by score, as in the table": "Nombre d’outils par note, comme dans le tableau",
	"Number of tools by score":                  "Nombre d’outils par note",
	"%v to %v":                                  "de %v à %v",
	"%v to under %v":                            "de %v à moins de %v",

	"Build with the data":                           "Exploiter les données",
	"Every endpoint, ready to try in your browser.": "Tous les endpoints, à essayer dans le navigateur.",
	"One query for exactly what you need.":          "Une requête pour obtenir juste le nécessaire.",
	"The catalog as tools for your AI agent.":       "Le catalogue à portée de votre agent d’IA.",
	"A signed request for every change.":            "Une requête signée à chaque changement.",
	"Changes, prices and retired tools as feeds.":   "Changements, prix et outils disparus, sous forme de flux.",
	"Reviews in chunks, ready for retrieval.":       "Les avis découpés, prêts pour la recherche sémantique.",

	"Compare plans": "Comparer les formules",
	"The full catalog, no sign-up, %d requests per day.":                  "Tout le catalogue, sans inscription, %d requêtes par jour.",
	"%d requests per day, embeddings and %d API keys.":                    "%d requêtes par jour, les embeddings et %d clés d’API.",
	"Sign up with your email address":                                     "Inscrivez-vous avec votre adresse e-mail",
	`€99<span> per month plus VAT</span>`:                                 `99 €<span> par mois hors TVA</span>`,
	"Unlimited requests, webhooks, %d API keys and a 99%% uptime target.": "Requêtes illimitées, webhooks, %d clés d’API et un objectif de disponibilité de 99 %%.",
}
