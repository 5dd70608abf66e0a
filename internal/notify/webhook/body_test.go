package webhook

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"palmares/graph"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/cache"
	"palmares/internal/dev/testkit"
)

// What is too long is told with a link, under which it is.
func TestLongBody(t *testing.T) {
	t.Parallel()
	s := newSite(t, testkit.Open(t, testkit.SQLite(t)))
	r := newReceiver(t)
	e := s.add(Wish{URL: r.URL})
	long := func(tagline string) []byte {
		return []byte(`{"slug":"long","name":"Long","tagline":"` + tagline + `"}`)
	}
	first := tellAll(t, s.Store,
		journal.Entry{Kind: journal.ToolUpdated, Event: journal.EventToolUpdated, Slug: "long", Category: "code", Before: long("short"), After: long(strings.Repeat("€", 8_000))},
		journal.Entry{Kind: journal.ToolCreated, Event: journal.EventToolCreated, Slug: "long", Category: "code", After: long(strings.Repeat("x", 19_000))},
	)
	s.sendDue(e)
	got := r.all()
	if len(got) != 3 || len(got[1].body) < 19_000 || len(got[0].body) > 2_000 {
		t.Fatalf("%d came", len(got))
	}
	executor := graph.NewExecutor(graph.Config{Catalog: s.Store, Limits: graph.DefaultLimits, Log: slog.New(slog.DiscardHandler)})
	api := graph.NewHandler(executor, cache.New(1<<20, nil, slog.New(slog.DiscardHandler)))
	for i, one := range got {
		var body struct {
			ID, Type, Slug string
			Data           struct {
				TooLong bool `json:"too_long"`
				Bytes   int
				Fields  int `json:"fields_changed"`
				Link    string
			}
		}
		if len(one.body) > maxBody {
			t.Errorf("%d bytes were sent", len(one.body))
		}
		if err := json.Unmarshal(one.body, &body); err != nil {
			t.Fatal(err)
		}
		if body.Data.TooLong != (i == 0) {
			t.Errorf("%.100s", one.body)
		}
		if !body.Data.TooLong {
			continue
		}
		fitsSchema(t, body.Type, one.body)
		if body.Data.Bytes < 24_000 || body.Data.Fields != 1 || body.Slug != "long" || body.Type != journal.EventToolUpdated {
			t.Errorf("%s", one.body)
		}
		path, found := strings.CutPrefix(body.Data.Link, s.PublicURL)
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if text := answer.Body.String(); !found || answer.Code != 200 || !strings.Contains(text, `"id":"`+ids(first, 1)[0]+`"`) || strings.Count(text, "€") != 8_000 {
			t.Errorf("%s: %d %.300s", body.Data.Link, answer.Code, text)
		}
	}
}

// Nothing comes before the first.
func TestLinkToTheFirst(t *testing.T) {
	t.Parallel()
	link := New(Config{}).linkTo(&journal.Event{Number: 1})
	if strings.Contains(link, "evt_0") || !strings.Contains(link, "null") {
		t.Error(link)
	}
}

// fitsSchema holds a body against what its type is published to be.
func fitsSchema(t *testing.T, event string, body []byte) {
	t.Helper()
	answer := httptest.NewRecorder()
	journal.SchemaHandler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, journal.SchemasPath+event+".json", nil))
	published, err := jsonschema.UnmarshalJSON(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", published); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	sent, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(sent); err != nil {
		t.Error(err)
	}
}
