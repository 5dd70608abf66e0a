package near

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNames(t *testing.T) {
	guides := []string{"quick-start", "paging", "caching", "quotas", "embeddings", "webhooks", "dashboards"}
	tools := []string{"plume", "Écritoire & Cie", "enclume-8", "bosco-et-matelots", "atelier-nova", "plume-noire", "voix-ardoise", "a", "cœur-de-lin"}
	for _, c := range []struct {
		wanted string
		among  []string
		want   string
	}{
		{"webhook", guides, "webhooks"},
		{"WebHooks", guides, "webhooks"},
		{"wehbooks", guides, "webhooks"}, // two neighbours swapped
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
		if got := Names(c.wanted, c.among, 5); !slices.Equal(got, want) {
			t.Errorf("%.40q: got %q, want %q", c.wanted, got, want)
		}
	}
}

func TestAtMost(t *testing.T) {
	among := []string{"tool-3", "tool-1", "tool-2"}
	if got := Names("tool", among, 2); !slices.Equal(got, []string{"tool-1", "tool-2"}) {
		t.Errorf("got %q", got)
	}
	if got := Names("tool", among, 0); got != nil {
		t.Errorf("got %q", got)
	}
}

// The narrow way through the table comes to the same as the whole table.
func TestEditsAgainstTheWholeTable(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		letters := make([]byte, 1+random.IntN(12))
		for i := range letters {
			letters[i] = "abc"[random.IntN(3)]
		}
		return string(letters)
	}
	for range 200_000 {
		a, b := word(), word()
		sought := newTarget(a)
		name := &NewIndex([]string{b}).names[0]
		whole, got := wholeTable(a, b), sought.edits(name, max(len(a)-len(b), len(b)-len(a)))
		if whole <= sought.slips && got != whole || whole > sought.slips && got <= sought.slips {
			t.Fatalf("%s and %s: %d, but %d", a, b, got, whole)
		}
	}
}

// Who asks for fewer names gets the first of those who asks for all gets.
func TestFewAreTheFirst(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	names := make([]string, 300)
	for i := range names {
		for range 3 + random.IntN(4) {
			names[i] += string("abc"[random.IntN(3)])
		}
	}
	index := NewIndex(names)
	for _, wanted := range names {
		all := index.Nearest(wanted, len(names))
		for most := range 8 {
			if few := index.Nearest(wanted, most); !slices.Equal(few, all[:min(most, len(all))]) {
				t.Fatalf("%s: the first %d are %v, of %v", wanted, most, few, all)
			}
		}
	}
}

func wholeTable(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replaced := d[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			d[i][j] = min(replaced, d[i-1][j]+1, d[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}

func FuzzNames(f *testing.F) {
	f.Add("plume", "plüme")
	f.Add("\xff", "\x00")
	f.Fuzz(func(t *testing.T, wanted, name string) {
		for _, got := range Names(wanted, []string{name, "plume", ""}, 3) {
			if !slices.Contains([]string{name, "plume"}, got) {
				t.Errorf("%q came out of nowhere", got)
			}
		}
		if plain(name) != "" && utf8.RuneCountInString(plain(name)) <= longest && plain(cut(name, longest)) == plain(name) && len(Names(name, []string{name}, 1)) != 1 {
			t.Errorf("%q is not near itself", name)
		}
	})
}

// Names that are alike in the whole catalog are the worst there is.
func BenchmarkNearest(b *testing.B) {
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%s-%d", []string{"atelier", "plume", "voix", "enclume"}[i%4], []string{"nova", "noire", "libre"}[i%3], i)
	}
	index := NewIndex(names)
	for _, wanted := range []string{"atelier-nvoa-12001", "nothing-like-it", "at", strings.Repeat("abcdefghijklmnopqrstuvwxyz-0123456789-", 3)} {
		b.Run(wanted, func(b *testing.B) {
			for b.Loop() {
				index.Nearest(wanted, 5)
			}
		})
	}
}
