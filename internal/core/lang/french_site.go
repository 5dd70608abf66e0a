package lang

// Codes of the catalog, and errors of its pages.
var frenchSite = map[Message]string{
	"shut down":                   "fermé",
	"acquired":                    "racheté",
	"discontinued":                "abandonné",
	"pivoted":                     "reconverti",
	"merged into another product": "intégré à un autre produit",

	"Page not found":                        "Page introuvable",
	"Invalid request":                       "Requête non valide",
	"Too many requests":                     "Trop de requêtes",
	"The catalog is unavailable":            "Le catalogue est indisponible",
	"Release not found":                     "Édition introuvable",
	"View all releases":                     "Voir toutes les éditions",
	"View it as of release %d":              "Voir la page dans l’édition %d",
	"It has been removed from the catalog.": "Il a été retiré du catalogue.",
	"There is no page at this address.":     "Il n’y a pas de page à cette adresse.",
	"The catalog is temporarily unavailable. Recently viewed pages still work; try this one again in a minute.": "Le catalogue est inaccessible pour le moment. Les pages consultées récemment fonctionnent encore ; réessayez celle-ci dans une minute.",
	"Too many pages are being loaded at the same time. Try again in a few seconds.":                             "Trop de pages se chargent en même temps. Réessayez dans quelques secondes.",
	"%s must be text of at most %d characters.":                                                                 "%s doit être un texte de %d caractères au plus.",
	"Our database is unavailable at the moment.":                                                                "Notre base de données est indisponible pour le moment.",
}
