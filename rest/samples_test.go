package rest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"palmares/ent"
	"palmares/graph"
	"palmares/internal/catalog/feed"
	"palmares/internal/catalog/feed/feedtest"
	"palmares/internal/core/cache"
	"palmares/internal/core/store"
	"palmares/internal/dev/testkit"
	"palmares/rest"
)

// another is a catalog that shares no slug with the demo. Its best tool has
// neither a document nor a price that ever changed.
func another(name string) []byte {
	rated := func(what string, score float64, change func(*feed.Tool)) *feed.Tool {
		return feedtest.Tool(name+"-"+what, func(t *feed.Tool) {
			t.Score = &score
			change(t)
		})
	}
	compared := func(what, date string, published bool) *feed.Comparison {
		return &feed.Comparison{
			Slug: name + "-" + what, Title: "L'un ou l'autre ?", ToolA: name + "-best", ToolB: name + "-priced", Winner: name + "-best", WinnerNote: "Le meilleur.",
			Published: feed.Published(published), UpdatedAt: date, CanonicalURL: "https://palmares.example/" + what,
		}
	}
	return feedtest.Catalog("2026-11-10",
		rated("best", 7.9, func(*feed.Tool) {}),
		rated("priced", 7.8, func(t *feed.Tool) {
			t.PriceHistory = []feed.PriceChange{{ChangedAt: "2026-10-01", Pricing: "payant", Price: "20 €/mois", PreviousPricing: "payant", PreviousPrice: "10 €/mois"}}
		}),
		rated("told", 7.7, func(t *feed.Tool) { t.Tier = 1 }),
		compared("older", "2026-10-01", true), compared("newer", "2026-10-02", true), compared("hidden", "2026-10-03", false),
	)
}

// published imports a catalog and has a cache hear of it, as the program does.
func published(t *testing.T, s *store.Store, answers *cache.Cache, catalog []byte) {
	t.Helper()
	report, err := feed.Import(t.Context(), s, bytes.NewReader(catalog), feed.Options{Force: true})
	if err == nil {
		err = answers.Renew(report.Release)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Every example of the document is there, whatever the catalog, and in the
// operation beside it, too. It is the best that has what the path is about.
func TestExamplesAreOfTheCatalog(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		handler, answers := handlerOver(t, s)
		var tags []string
		for _, name := range []string{"first", "second"} {
			published(t, s, answers, another(name))
			got := get(handler, "/api/v1/openapi.json")
			tags = append(tags, got.Header().Get("ETag"))
			examples := map[string]string{}
			for _, path := range pathsOf(t, got.Body.Bytes()) {
				examples[path.id] = path.example
				if answer := get(handler, path.example); answer.Code != 200 {
					t.Errorf("%s: %d %s", path.example, answer.Code, answer.Body)
				}
			}
			for id, want := range map[string]string{
				"tool": "/api/v1/tools/" + name + "-best", "price": "/api/v1/pricing/" + name + "-priced",
				"embeddings": "/api/embeddings/" + name + "-told", "comparatif": "/api/v1/comparatifs/" + name + "-newer",
			} {
				if examples[id] != want {
					t.Errorf("%s: tries %s", id, examples[id])
				}
				if !strings.Contains(got.Body.String(), rest.ExplorerPath(want)) {
					t.Errorf("%s: its link opens another", id)
				}
			}
			if n := strings.Count(got.Body.String(), fmt.Sprintf(`"slug": "%s-`, name)); n != 4 {
				t.Errorf("%d of 4 operations are shown with it", n)
			}
		}
		if tags[0] == tags[1] {
			t.Error("two documents go by one tag")
		}
	})
}

// Where there is nothing to try, the examples are the demo's: before the first
// publication, and while the database cannot be read. Nobody keeps these.
func TestExamplesWithoutACatalog(t *testing.T) {
	check := func(t *testing.T, handler http.Handler) {
		t.Helper()
		got := get(handler, "/api/v1/openapi.json")
		if got.Code != 200 || !bytes.Equal(got.Body.Bytes(), document(t)) || got.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%d %v", got.Code, got.Header())
		}
	}
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		handler, answers := handlerOver(t, s)
		check(t, handler)
		published(t, s, answers, another("first"))
		if got := get(handler, "/api/v1/openapi.json"); !strings.Contains(got.Body.String(), "first-best") || got.Header().Get("Cache-Control") == "no-store" {
			t.Errorf("it is still without: %v", got.Header())
		}
	})
	handler, _ := handlerOver(t, unreadable{})
	check(t, handler)
	if _, _, err := handler.Samples(t.Context()); err == nil {
		t.Error("samples of what cannot be read")
	}
}

// unreadable is a catalog whose database is away.
type unreadable struct{ graph.Catalog }

func (unreadable) Reading(context.Context, func(context.Context, *ent.Release) error) error {
	return errors.New("away")
}

// However releases come in between, a document is of one of them.
func TestExamplesAreOfOneRelease(t *testing.T) {
	testkit.EachStore(t, func(t *testing.T, s *store.Store) {
		handler, answers := handlerOver(t, s)
		published(t, s, answers, another("even"))
		var readers sync.WaitGroup
		over := make(chan struct{})
		for range 4 {
			readers.Go(func() {
				for {
					select {
					case <-over:
						return
					default:
					}
					body := get(handler, "/api/v1/openapi.json").Body.String()
					even, odd := strings.Contains(body, "even-"), strings.Contains(body, "odd-")
					if even == odd {
						t.Errorf("even: %v, odd: %v", even, odd)
						return
					}
				}
			})
		}
		for i := range 6 {
			published(t, s, answers, another([]string{"odd", "even"}[i%2]))
		}
		close(over)
		readers.Wait()
		if body := get(handler, "/api/v1/openapi.json").Body.String(); !strings.Contains(body, "even-best") {
			t.Error("it is not of the last")
		}
	})
}
