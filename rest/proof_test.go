package rest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"palmares/auth"
)

// Every path is asked with every parameter at its bounds and past them, and
// each answer is held against the document that the server gives of itself.
func TestAnswersAreAsDescribed(t *testing.T) {
	onDemo(t, func(t *testing.T, handler http.Handler) {
		doc, err := openapi3.NewLoader().LoadFromData(get(handler, "/api/v1/openapi.json").Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		router, err := gorillamux.NewRouter(doc)
		if err != nil {
			t.Fatal(err)
		}
		proof := &proof{handler: handler, router: router, seen: map[string]bool{}}
		for path, item := range doc.Paths.Map() {
			for _, c := range requestsFor(path, item.Get) {
				proof.check(t, c)
			}
		}
		for _, status := range []string{"200", "304", "400", "401", "404", "406"} {
			if !proof.seen[status] {
				t.Errorf("no answer was a %s", status)
			}
		}
	})
}

// trial is one request and the status that it must have.
type trial struct {
	target  string
	header  http.Header
	plan    auth.Plan
	status  int
	invalid bool // as the document says, too
}

// requestsFor reads off the document what to ask.
func requestsFor(path string, operation *openapi3.Operation) []trial {
	base := path
	var good, bad []string
	for _, ref := range operation.Parameters {
		p := ref.Value
		switch {
		case p.In == "path":
			base = strings.Replace(path, "{slug}", fmt.Sprint(p.Example), 1)
		case p.In == "query":
			yes, no := valuesOf(p.Schema.Value)
			for _, value := range yes {
				good = append(good, p.Name+"="+url.QueryEscape(value))
			}
			for _, value := range no {
				bad = append(bad, p.Name+"="+url.QueryEscape(value))
			}
		}
	}
	trials := []trial{
		{target: base, plan: auth.Developer, status: 200},
		{target: base + "?nobody=knows&this=parameter", plan: auth.Developer, status: 200},
		{target: base, plan: auth.Developer, status: 304, header: http.Header{"If-None-Match": {"*"}}},
		{target: base, plan: auth.Developer, status: 406, header: http.Header{"Accept-Encoding": {"identity;q=0"}}},
	}
	if base != path {
		trials = append(trials, trial{target: strings.Replace(path, "{slug}", "nobody", 1), plan: auth.Developer, status: 404})
	}
	if strings.Contains(path, "embeddings") {
		trials = append(trials, trial{target: base, plan: auth.Anonymous, status: 401})
	}
	for _, query := range good {
		trials = append(trials, trial{target: base + "?" + query, plan: auth.Anonymous, status: 200})
	}
	for _, query := range bad {
		trials = append(trials, trial{target: base + "?" + query, plan: auth.Anonymous, status: 400, invalid: true})
	}
	if len(good) > 0 {
		trials = append(trials, trial{target: base + "?" + onceEach(good), plan: auth.Anonymous, status: 200})
	}
	return trials
}

// valuesOf are a parameter's bounds, and what lies just past them.
func valuesOf(s *openapi3.Schema) (good, bad []string) {
	switch {
	case s.Enum != nil:
		for _, value := range s.Enum {
			good = append(good, fmt.Sprint(value))
		}
		return good, []string{"bogus", ""}
	case s.Type.Is("integer"):
		least, most := int(*s.Min), int(*s.Max)
		return []string{strconv.Itoa(least), strconv.Itoa(most)}, []string{strconv.Itoa(least - 1), strconv.Itoa(most + 1), "x", ""}
	case s.Type.Is("number"):
		return []string{"0", "-3.5", "8", "10", "1e300"}, []string{"NaN", "Inf", "0x8", "8,5", ""}
	}
	return []string{"code", "nowhere", strings.Repeat("é", 300)}, []string{""}
}

// onceEach takes the first value of every parameter.
func onceEach(queries []string) string {
	var names, chosen []string
	for _, query := range queries {
		name, _, _ := strings.Cut(query, "=")
		if !slices.Contains(names, name) {
			names = append(names, name)
			chosen = append(chosen, query)
		}
	}
	return strings.Join(chosen, "&")
}

type proof struct {
	handler http.Handler
	router  routers.Router
	seen    map[string]bool
}

func (p *proof) check(t *testing.T, c trial) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "https://palmares.example"+c.target, nil)
	for name, values := range c.header {
		r.Header[name] = values
	}
	got := serve(p.handler, r.WithContext(auth.WithCaller(r.Context(), auth.Caller{Plan: c.plan})))
	if got.Code != c.status {
		t.Errorf("%s: %d, not %d: %s", c.target, got.Code, c.status, got.Body)
		return
	}
	p.seen[strconv.Itoa(got.Code)] = true
	route, params, err := p.router.FindRoute(r)
	if err != nil {
		t.Errorf("%s: %v", c.target, err)
		return
	}
	request := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}}
	if err := openapi3filter.ValidateRequest(t.Context(), request); (err != nil) != c.invalid && !lenient(c.target) {
		t.Errorf("%s: the document says %v", c.target, err)
	}
	response := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: request, Status: got.Code, Header: got.Header(), Body: io.NopCloser(bytes.NewReader(got.Body.Bytes())),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	}
	if err := openapi3filter.ValidateResponse(t.Context(), response); err != nil {
		t.Errorf("%s: %v", c.target, err)
	}
	described := route.Operation.Responses.Status(got.Code).Value.Headers
	for name := range described {
		ours := !strings.HasPrefix(name, "X-Ratelimit") && !strings.HasPrefix(name, "X-RateLimit") && name != "X-Request-Id" // from other links of the chain
		if ours && got.Header().Get(name) == "" {
			t.Errorf("%s: has no %s", c.target, name)
		}
	}
	for name := range got.Header() {
		if strings.HasPrefix(name, "X-") && name != "X-Content-Type-Options" && !slices.ContainsFunc(keys(described), func(known string) bool { return strings.EqualFold(known, name) }) {
			t.Errorf("%s: %s is not in the document", c.target, name)
		}
	}
}

// lenient are values that the library takes for numbers, and we do not, or
// that it cannot tell from none.
func lenient(target string) bool {
	return strings.HasSuffix(target, "=") || strings.Contains(target, "=NaN") || strings.Contains(target, "=Inf") || strings.Contains(target, "=0x8")
}

func keys[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	return names
}
