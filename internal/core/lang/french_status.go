package lang

// The status page.
var frenchStatus = map[Message]string{
	"Our database is unavailable at the moment. Try again in a minute.": "Notre base de données est indisponible pour le moment. Réessayez dans une minute.",
	"Status unknown": "État inconnu",
	"no data":        "aucune donnée",
	"%s%%":           "%s %%",
}
