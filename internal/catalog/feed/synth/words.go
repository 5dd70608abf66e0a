package synth

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

var (
	categories     = []string{"agents", "chat", "code", "image", "recherche", "redaction", "video", "voix", "vide"}
	categoryLabels = []string{"Agents", "Chat", "Code", "Image", "Recherche", "Rédaction", "Vidéo", "Voix", "Vide"}

	icps     = []string{"vibe-coder", "agentic-engineer", "mixte"}
	pricings = []string{"gratuit", "freemium", "payant"}
	reasons  = []string{"mort", "acquis", "deprecie", "pivot", "absorbe"}
	sections = []string{"verdict", "prix", "forces", "limites", "pour-qui"}
	periods  = []string{"mois", "an", "heure", "requête", "poste / mois"}

	stems    = []string{"atelier", "plume", "forge", "boussole", "lanterne", "rivage", "cadran", "orme", "galet", "sillage", "verger"}
	suffixes = []string{"nova", "lab", "pro", "studio", "bleu", "vif", "clair"}

	// Names that orders and encodings stumble over.
	oddNames = []string{
		"Écritoire & Cie", "écritoire & cie", "ECRITOIRE & CIE", "L'Établi <3>", `Le "Guillemet"`, "Cœur d’or", "Zoé\u0301",
		"İstanbul", "日本語ツール", "🦊 Renard", "a", "Ångström №5", "C:\\Outils", "Tab\tdedans", "e\u0301toile", "\u2028ligne",
	}
	words = strings.Fields(`outil équipe brouillon modèle réponse prix essai dépôt page note image voix agent
		code contexte lecture rapide précis fiable sobre cher utile net simple long court chaque pour sans avec
		entre après déjà encore très peu trop à l’usage côté cœur façon goût même où là`)
)

func one(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }
func pick(i int, from []string) string       { return from[i%len(from)] }

// name is plain most of the time; names need not be unique.
func (m *maker) name(r *rand.Rand, i int) string {
	if i%7 == 0 {
		return one(r, oddNames)
	}
	return strings.ToUpper(pick(i, stems)[:1]) + pick(i, stems)[1:] + " " + pick(r.IntN(len(suffixes)), suffixes)
}

// scale is null once in n times, and meets both ends of the scale.
func scale(r *rand.Rand, n int) *float64 {
	if r.IntN(n) == 0 {
		return nil
	}
	v := float64(r.IntN(101)) / 10
	if r.IntN(50) == 0 {
		v = float64(r.IntN(1_000_001)) / 100_000 // more decimals than anyone asks for
	}
	return &v
}

func price(r *rand.Rand) string {
	amount := fmt.Sprint(r.IntN(300))
	switch r.IntN(4) {
	case 0:
		amount = fmt.Sprintf("%d,%02d", r.IntN(100), r.IntN(100))
	case 1:
		amount = fmt.Sprintf("%d.%d", r.IntN(10), r.IntN(10))
	}
	return amount + " €/" + one(r, periods)
}

func day(r *rand.Rand, year int) string {
	return fmt.Sprintf("%d-%02d-%02d", year, 1+r.IntN(12), 1+r.IntN(28))
}

func sentence(r *rand.Rand, n int) string {
	chosen := make([]string, n)
	for i := range chosen {
		chosen[i] = one(r, words)
	}
	return strings.Join(chosen, " ")
}

func paragraph(r *rand.Rand) string {
	return sentence(r, 20) + ". " + sentence(r, 25) + " : " + sentence(r, 15) + "."
}
