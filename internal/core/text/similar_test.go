package text

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"palmares/internal/dev/check"
)

func TestSimilar(t *testing.T) {
	guides := []string{"quick-start", "paging", "caching", "quotas", "embeddings", "webhooks", "dashboards"}
	tools := []string{"plume", "Écritoire & Cie", "enclume-8", "bosco-et-matelots", "atelier-nova", "plume-noire", "voix-ardoise", "a", "cœur-de-lin"}
	for _, c := range []struct {
		wanted string
		among  []string
		want   string
	}{
		{"webhook", guides, "webhooks"},
		{"WebHooks", guides, "webhooks"},
		{"wehbooks", guides, "webhooks"}, // adjacent letters swapped
		{"quickstart", guides, "quick-start"},
		{"quick start", guides, "quick-start"},
		{"Quick_Start!", guides, "quick-start"},
		{"quick-start-guide", guides, "quick-start"},
		{"start", guides, "quick-start"},
		{"cahcing", guides, "caching"},
		{"pageing", guides, "paging"},
		{"quota", guides, "quotas"},
		{"embedings", guides, "embeddings"},
		{"something else", guides, ""},
		{"", guides, ""},
		{"---", guides, ""},
		{"x", guides, ""},
		{"plum", tools, "plume plume-noire"},
		{"plume", tools, "plume plume-noire"},
		{"plmue", tools, "plume"},
		{"ehco", []string{"echo"}, "echo"},
		{"PLÛME", tools, "plume plume-noire"},
		{"ecritoire cie", tools, "Écritoire & Cie"},
		{"coeur de lin", tools, "cœur-de-lin"},
		{"coeur-de-lain", tools, "cœur-de-lin"},
		{"matelots", tools, "bosco-et-matelots"},
		{"enclme8", tools, "enclume-8"},
		{"a", tools, "a"},
		{strings.Repeat("plume", 1000), tools, "plume"},
	} {
		want := strings.Fields(c.want)
		if c.want == "Écritoire & Cie" {
			want = []string{c.want}
		}
		check.Slices(t, Similar(c.wanted, c.among, 5), want, "%.40q", c.wanted)
	}
}

func TestSimilarLimit(t *testing.T) {
	among := []string{"tool-3", "tool-1", "tool-2"}
	check.Slices(t, Similar("tool", among, 2), []string{"tool-1", "tool-2"}, "limit 2")
	if got := Similar("tool", among, 0); got != nil {
		t.Errorf("limit 0: got %q, want none", got)
	}
}

func TestNearest(t *testing.T) {
	parameters := []string{"page", "limit", "category", "score_min", "obsolescence_max", "search", "sort", "as_of"}
	categories := []string{"agents", "chat", "code", "image", "recherche", "redaction", "video", "voix"}
	for _, c := range []struct {
		wanted string
		among  []string
		want   string
	}{
		{"categorie", parameters, "category"},
		{"Catégorie", parameters, "category"},
		{"min_score", parameters, "score_min"},
		{"max-obsolescence", parameters, "obsolescence_max"},
		{"scoreMin", parameters, "score_min"},
		{"offset", parameters, ""},
		{"utm_source", parameters, ""},
		{"", parameters, ""},
		{"--", append(parameters, ""), ""},
		{"coding", categories, "code"},
		{"voice", categories, "voix"},
		{"chatbots", categories, "chat"},
		{"cook", categories, ""},
		{"vos", []string{"vox-lumiere"}, ""}, // two letters are not enough
		{"musique", categories, ""},
		{"code", nil, ""},
		{strings.Repeat("code", 10_000), categories, "code"},
	} {
		check.Equal(t, Nearest(c.wanted, c.among), c.want, "%.40q", c.wanted)
	}
}

// FuzzSimilar checks that only known names are suggested, and that a name is similar to
// itself.
func FuzzSimilar(f *testing.F) {
	f.Add("plume", "plüme")
	f.Add("\xff", "\x00")
	f.Fuzz(func(t *testing.T, wanted, name string) {
		for _, got := range Similar(wanted, []string{name, "plume", ""}, 3) {
			check.True(t, slices.Contains([]string{name, "plume"}, got), "got %q, want one of the names", got)
		}
		if normalize(Truncate(name, maxCompared)) != "" && normalize(Truncate(name, maxCompared)) == normalize(name) && len(Similar(name, []string{name}, 1)) != 1 {
			t.Errorf("got no similar names for %q, want itself", name)
		}
	})
}

// A catalog whose names all resemble each other is the worst case.
func BenchmarkSimilar(b *testing.B) {
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%s-%d", []string{"atelier", "plume", "voix", "enclume"}[i%4], []string{"nova", "noire", "libre"}[i%3], i)
	}
	index := NewIndex(names)
	for _, wanted := range []string{"atelier-nvoa-12001", "nothing-like-it", "at", strings.Repeat("abcdefghijklmnopqrstuvwxyz-0123456789-", 3)} {
		b.Run(wanted, func(b *testing.B) {
			for b.Loop() {
				index.Similar(wanted, 5)
			}
		})
	}
}
