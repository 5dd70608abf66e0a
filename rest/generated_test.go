package rest_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"pgregory.net/rapid"

	"palmares/auth"
	"palmares/internal/dev/check"
	"palmares/internal/dev/testkit"
)

// Requests are generated from the OpenAPI document. No response is a server error, each
// is valid against the document, and each 400 names a parameter that is invalid. A
// failing request is shrunk before it is shown; SEED=n generates others.
func TestGeneratedRequests(t *testing.T) { testGenerated(t, 2_000) }

func TestGeneratedWithManyRequests(t *testing.T) {
	testkit.FullTier(t, "it sends 20,000 requests")
	testGenerated(t, 20_000)
}

func testGenerated(t *testing.T, count int) {
	for name, value := range map[string]string{
		"rapid.checks": strconv.Itoa(count), "rapid.seed": cmp.Or(os.Getenv("SEED"), "40"), "rapid.nofailfile": "true",
	} {
		check.OK(t, flag.Set(name, value))
	}
	registerDownloads()
	onDemo(t, func(t *testing.T, handler http.Handler) {
		g := generator{doc: load(t, get(handler, "/api/v1/openapi.json").Body.Bytes())}
		var page struct {
			NextSync string `json:"next_sync"`
		}
		check.OK(t, json.Unmarshal(get(handler, "/api/embeddings?limit=100").Body.Bytes(), &page))
		g.sync = page.NextSync
		sent, seen := 0, map[string]int{}
		rapid.Check(t, func(t *rapid.T) {
			r := g.request(t)
			got := serve(handler, r.http())
			sent++
			seen[r.operation.OperationID]++
			seen[strconv.Itoa(got.Code)]++
			r.check(t, g.doc, got)
		})
		check.True(t, sent == count, "got %d requests, want %d", sent, count) // rapid stops early if the time limit of the test is near
		for _, status := range []string{"200", "304", "400", "401", "404", "406"} {
			check.True(t, seen[status] != 0, "got no response with status %s, want one", status)
		}
		for _, item := range g.doc.Paths.Map() {
			check.True(t, seen[item.Get.OperationID] != 0, "got no request for %s, want one", item.Get.OperationID)
		}
		t.Logf("%d requests: %v", sent, seen)
	})
}

// generated is a request, and what is known about it.
type generated struct {
	path      string // in the document
	operation *openapi3.Operation
	slug      string
	pairs     []string // of the query string
	header    http.Header
	caller    auth.Caller
	invalid   []string // parameters that must be rejected
	uncertain []string // parameters that may be rejected
}

func (r *generated) target() string {
	target := strings.Replace(r.path, "{slug}", url.PathEscape(r.slug), 1)
	if len(r.pairs) > 0 {
		target += "?" + strings.Join(r.pairs, "&")
	}
	return target
}

func (r *generated) String() string {
	return fmt.Sprintf("GET %s with the plan %s and the headers %v", r.target(), r.caller.Plan, r.header)
}

func (r *generated) http() *http.Request {
	request := httptest.NewRequest(http.MethodGet, "https://palmares.example"+r.target(), nil)
	maps.Copy(request.Header, r.header)
	return request.WithContext(auth.WithCaller(request.Context(), r.caller))
}

// check compares a response with the document and with what is known about the request.
func (r *generated) check(t *rapid.T, doc *openapi3.T, got *httptest.ResponseRecorder) {
	if got.Code >= 500 {
		t.Fatalf("%s: got %d %s, want no server error", r, got.Code, got.Body)
	}
	validated := &openapi3filter.RequestValidationInput{
		Request: r.http(), PathParams: map[string]string{"slug": r.slug},
		Route:   &routers.Route{Spec: doc, Path: r.path, PathItem: doc.Paths.Value(r.path), Method: http.MethodGet, Operation: r.operation},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if err := validateResponse(validated, got); err != nil {
		t.Fatalf("%s: got %d and %v, want a response as documented", r, got.Code, err)
	}
	for name := range r.operation.Responses.Status(got.Code).Value.Headers {
		if got.Header().Get(name) == "" && r.sends(name, got) {
			t.Fatalf("%s: got %d without the header %s, want it as documented", r, got.Code, name)
		}
	}
	suspects := slices.Concat(r.invalid, r.uncertain)
	var body struct{ Error string }
	if got.Code >= 400 && json.Unmarshal(got.Body.Bytes(), &body) != nil {
		t.Fatalf("%s: got %d %s, want an error", r, got.Code, got.Body)
	}
	named := slices.ContainsFunc(suspects, func(name string) bool { return strings.Contains(body.Error, name) })
	switch requiresKey := r.operation.Security != nil; {
	case got.Code == 400 && !named:
		t.Fatalf("%s: got %q, want one of %q in it", r, body.Error, suspects)
	case len(r.invalid) > 0 && got.Code != 400:
		t.Fatalf("%s: got %d, want 400 because of %q", r, got.Code, r.invalid)
	case len(suspects) > 0:
	case (got.Code == 401) != (requiresKey && r.caller.Plan == auth.Anonymous):
		t.Fatalf("%s: got %d %s, want 401 only if a key is missing", r, got.Code, got.Body)
	default:
		if err := openapi3filter.ValidateRequest(t.Context(), validated); err != nil {
			t.Fatalf("%s: got %v, want a request that is valid according to the document", r, err)
		}
	}
}

// sends reports whether a response must have a documented header, some of which depend on
// the request.
func (r *generated) sends(name string, got *httptest.ResponseRecorder) bool {
	asOf := func(prefix string) bool {
		return got.Code == 200 && slices.ContainsFunc(r.pairs, func(pair string) bool { return strings.HasPrefix(pair, "as_of="+prefix) })
	}
	switch name {
	case "X-Unknown-Parameters":
		return got.Code == 200 && len(r.pairs) > 0 && strings.HasPrefix(r.pairs[len(r.pairs)-1], "x_")
	case "Memento-Datetime":
		return slices.Contains(r.pairs, "as_of=8") && got.Code == 200
	case "Content-Location":
		return asOf("2026-")
	case "Link":
		return got.Code >= 400 || got.Header().Get("X-Total-Count") != "" && !isDownload(r.path) || strings.HasSuffix(r.path, "/changes")
	case "X-Unknown-Values", "X-Request-Id": // see TestUnknownValues; set by middleware
		return false
	}
	return !strings.Contains(strings.ToLower(name), "ratelimit") // set by middleware
}

// generator makes requests for the operations of a document.
type generator struct {
	doc  *openapi3.T
	sync string // a valid token
}

func (g generator) request(t *rapid.T) *generated {
	paths := slices.Sorted(maps.Keys(g.doc.Paths.Map()))
	r := &generated{path: rapid.SampledFrom(paths).Draw(t, "path"), header: http.Header{}}
	r.operation = g.doc.Paths.Value(r.path).Get
	r.caller = rapid.SampledFrom([]auth.Caller{
		{Plan: auth.Anonymous}, {Plan: auth.Developer, Account: 1, Key: "key"}, {Plan: auth.Pro, Account: 2, Key: "other"},
	}).Draw(t, "caller")
	ways := []string{"absent", "valid"}
	if rapid.Bool().Draw(t, "any parameters") {
		ways = []string{"absent", "absent", "absent", "valid", "valid", "valid", "invalid", "any", "twice", "malformed"}
	}
	for _, ref := range r.operation.Parameters {
		switch p := ref.Value; p.In {
		case "path":
			r.slug = rapid.OneOf(rapid.SampledFrom([]string{fmt.Sprint(p.Example), "nobody", "plume"}), rapid.StringN(1, -1, 300)).Draw(t, "slug")
			if strings.ContainsRune(r.slug, 0) {
				r.invalid = append(r.invalid, "The path")
			}
		case "query":
			g.add(t, r, p, rapid.SampledFrom(ways).Draw(t, p.Name))
		case "header":
			if value := rapid.OneOf(rapid.Just(""), rapid.SampledFrom([]string{"*", `"a"`, `W/"a", "b`}), rapid.StringMatching(`[ -~]{0,40}`)).Draw(t, p.Name); value != "" {
				r.header.Set(p.Name, value)
			}
		}
	}
	if coding := rapid.SampledFrom([]string{"", "", "", "identity", "identity;q=0", "*;q=0", "identity;q=x"}).Draw(t, "Accept-Encoding"); coding != "" {
		r.header.Set("Accept-Encoding", coding)
	}
	if rapid.IntRange(0, 9).Draw(t, "unknown parameter") == 9 {
		name := rapid.StringMatching(`x_[a-zé]{1,9}`).Draw(t, "name")
		r.pairs = append(r.pairs, url.QueryEscape(name)+"="+rapid.SampledFrom([]string{"", "1", "%C3%A9"}).Draw(t, "value"))
	}
	return r
}

// add adds a parameter in one of several ways, or not at all.
func (g generator) add(t *rapid.T, r *generated, p *openapi3.Parameter, way string) {
	pair := func(value string) { r.pairs = append(r.pairs, p.Name+"="+url.QueryEscape(value)) }
	switch way {
	case "valid":
		value, certain := g.valid(t, p)
		pair(value)
		if !certain {
			r.uncertain = append(r.uncertain, p.Name)
		}
	case "invalid":
		pair(rapid.OneOf(invalidValues(p.Schema.Value)...).Draw(t, p.Name))
		if p.Name == "sync" { // is only read after the key and the release
			r.uncertain = append(r.uncertain, p.Name)
		} else {
			r.invalid = append(r.invalid, p.Name)
		}
	case "any":
		pair(rapid.String().Draw(t, p.Name))
		r.uncertain = append(r.uncertain, p.Name)
	case "twice":
		value, _ := g.valid(t, p)
		pair(value)
		pair(value)
		if !p.Schema.Value.Type.Is("array") {
			r.invalid = append(r.invalid, p.Name)
		}
	case "malformed":
		r.pairs = append(r.pairs, p.Name+"="+rapid.SampledFrom([]string{"%", "%zz", "%ff", "a%00", "%ed%a0%80"}).Draw(t, p.Name))
		r.invalid = append(r.invalid, p.Name)
	}
}

// valid returns a value that is valid according to the document, and whether it is
// certain that the API accepts it.
func (g generator) valid(t *rapid.T, p *openapi3.Parameter) (value string, certain bool) {
	s := p.Schema.Value
	draw := func(g *rapid.Generator[string]) string { return g.Draw(t, p.Name) }
	day := rapid.Map(rapid.IntRange(0, 3_652_058), func(days int) string { // up to the end of the year 9999
		return time.Date(1, 1, 1+days, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
	})
	switch {
	case p.Name == "sync": // only the server can make one, and only for one category
		return draw(rapid.OneOf(rapid.Just(g.sync), rapid.StringMatching(s.Pattern))), false
	case p.Name == "as_of":
		if rapid.Bool().Draw(t, "as_of by its pattern") {
			return draw(rapid.StringMatching(s.Pattern)), false // also days that do not exist
		}
		return draw(rapid.OneOf(day, rapid.Map(rapid.IntRange(1, 999_999_999), strconv.Itoa), rapid.SampledFrom([]string{"1", "8", "2026-11-10"}))), true
	case s.Pattern != "":
		return draw(rapid.StringMatching(s.Pattern)), true
	case s.Type.Is("array") && s.Items.Value.Enum == nil:
		item := rapid.OneOf(rapid.SampledFrom([]string{"plume", "nobody", "https://www.plume.example/x"}), rapid.StringMatching(`[^\x00,]{1,300}`))
		some := rapid.Map(rapid.SliceOfN(item, 1, int(*s.MaxItems)), func(items []string) string { return strings.Join(items, ",") })
		return draw(rapid.OneOf(some, rapid.Just(distinct(*s.MaxItems)))), true
	case s.Type.Is("array"):
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(enum(s.Items.Value)), 1, 5).Draw(t, p.Name), ","), true
	case s.Enum != nil:
		return draw(rapid.SampledFrom(enum(s))), true
	case s.Format == "date":
		return draw(day), true
	case s.Type.Is("boolean"):
		return draw(rapid.SampledFrom([]string{"true", "false"})), true
	case s.Type.Is("integer"):
		return strconv.Itoa(rapid.IntRange(int(*s.Min), int(*s.Max)).Draw(t, p.Name)), true
	case s.Type.Is("number"):
		number := rapid.OneOf(rapid.Float64Range(-1, 11), rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64)).Draw(t, p.Name)
		return strconv.FormatFloat(number, 'g', -1, 64), true
	case s.MaxLength != nil: // a search, which may have too many words
		longest := int(*s.MaxLength)
		return draw(rapid.OneOf(rapid.SampledFrom([]string{"plume", "ecrir", "a b"}), rapid.StringN(1, longest, -1))), false
	}
	return draw(rapid.OneOf(rapid.SampledFrom([]string{"code", "nowhere", "plume"}), rapid.StringMatching(`[^\x00]{1,300}`))), true
}

func enum(s *openapi3.Schema) (values []string) {
	for _, value := range s.Enum {
		values = append(values, fmt.Sprint(value))
	}
	return values
}

// distinct returns a list of different items.
func distinct(count uint64) string {
	items := make([]string, count)
	for i := range items {
		items[i] = "x" + strconv.Itoa(i)
	}
	return strings.Join(items, ",")
}

// invalidValues generates values that do not match a schema.
func invalidValues(s *openapi3.Schema) []*rapid.Generator[string] {
	values := []*rapid.Generator[string]{rapid.Just("")}
	switch {
	case s.Type.Is("integer"):
		return append(values, rapid.Map(rapid.IntMax(int(*s.Min)-1), strconv.Itoa), rapid.Map(rapid.IntMin(int(*s.Max)+1), strconv.Itoa),
			rapid.StringMatching(`\+?[0-9]+[.e][0-9]{1,30}|[a-z٣]{1,80}`))
	case s.Type.Is("number"):
		return append(values, rapid.StringMatching(`-?(NaN|Inf|0x[0-9]{1,5}|[0-9],[0-9]|\.[0-9]|[0-9]\.|1_0|[1-9]e(309|9999))`))
	case s.Format == "date":
		return append(values, rapid.StringMatching(`[0-9]{4}-(1[3-9]|[2-9][0-9])-[0-9]{2}|20[0-9]{2}-02-30|[0-9]{4}-[0-9]-[0-9]`))
	case s.Type.Is("array") && s.Items.Value.Enum == nil:
		return append(values, rapid.Just(distinct(*s.MaxItems+1)), rapid.StringMatching(`,[a-z]{0,9}|[a-z]{1,9},|[a-z]{1,9},,[a-z]{1,9}`))
	case s.Enum != nil, s.Type.Is("array"), s.Type.Is("boolean"):
		return append(values, rapid.StringMatching(`[A-Z,]{1,80}`))
	case s.Pattern != "":
		return append(values, rapid.StringMatching(`(é|=|\+| |-)[a-z0-9]{0,700}`))
	case s.MaxLength != nil:
		return append(values, rapid.Map(rapid.IntRange(int(*s.MaxLength)+1, 3_000), func(n int) string { return strings.Repeat("é", n) }))
	}
	return values
}
