package words

import (
	"testing"

	"palmares/internal/core/lang"
	"palmares/internal/dev/check"
	"palmares/internal/web/chart"
)

// Fields of records, of results and of metrics have French words.
func TestField(t *testing.T) {
	for field, want := range map[string]struct {
		name string
		unit chart.Unit
	}{
		"winnerName": {"Vainqueur", chart.Number}, "winner": {"Vainqueur", chart.Number}, "unknownField": {"Unknown field", chart.Number}, "monthlyPrice": {"Prix mensuel,\u00a0€", chart.Euros},
		"mean_score": {"Note moyenne", chart.Score}, "obsolescence": {"Obsolescence", chart.Score}, "toolCount": {"Outils", chart.Count}, "winRate": {"Taux de victoire", chart.Proportion},
		"mean_days_since_update": {"Jours depuis le dernier test, en moyenne", chart.Days}, "retirements": {"Outils disparus", chart.Count},
	} {
		if name, unit := Field(lang.French, field); name != want.name || unit != want.unit {
			t.Errorf("%s: got %q in unit %d, want %q in %d", field, name, unit, want.name, want.unit)
		}
	}
}

func TestSentence(t *testing.T) {
	for name, want := range map[string]string{"écran-de_veille": "Écran de veille", "a": "A", "": "", "-": "-"} {
		check.Equal(t, Sentence(name), want, "%q", name)
	}
}
