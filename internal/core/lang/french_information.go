package lang

var frenchInformation = map[Message]string{
	// The page about plans.
	"What you get":          "Ce qui est inclus",
	"No API key":            "Sans clé d’API",
	"free":                  "gratuit",
	"%s per month plus VAT": "%s par mois hors TVA",
	"unlimited":             "illimitées",
	"REST, GraphQL, MCP and the full history": "REST, GraphQL, MCP et tout l’historique",
	"Review texts for embeddings":             "Textes des avis pour les embeddings",
	"CSV and NDJSON downloads":                "Téléchargements CSV et NDJSON",
	"Concurrent live streams":                 "Flux en direct simultanés",
	"Uptime target":                           "Objectif de disponibilité",
	"included":                                "inclus",
	"%d%%":                                    "%d %%",

	// Texts.
	"the operator of this server": "l’exploitant de ce serveur",
	"Link to: %s":                 "Lien vers : %s",
	"Text":                        "Texte",
	"%s, table %d":                "%s, tableau %d",
}
