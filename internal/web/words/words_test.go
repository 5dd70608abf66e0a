package words

import (
	"testing"

	"palmares/internal/core/lang"
	"palmares/internal/dev/check"
)

// Fields of records, of results and of metrics have French words.
func TestField(t *testing.T) {
	for field, want := range map[string]string{
		"winnerName": "Vainqueur", "winner": "Vainqueur", "monthlyPrice": "Prix mensuel,\u00a0€", "mean_score": "Note moyenne", "unknownField": "Unknown field",
	} {
		if got, _ := Field(lang.French, field); got != want {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}
}

func TestSentence(t *testing.T) {
	for name, want := range map[string]string{"écran-de_veille": "Écran de veille", "a": "A", "": "", "-": "-"} {
		check.Equal(t, Sentence(name), want, "%q", name)
	}
}
