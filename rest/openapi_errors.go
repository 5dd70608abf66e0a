package rest

// errorStatuses are the answers that are none, each with an example that is a
// real one.
var errorStatuses = []struct {
	code                 int
	name                 string
	always, missing      bool // which paths have it: all, or those that may not find what is asked for
	description, example string
	header               string
}{
	{code: 400, name: "BadRequest", always: true, description: "A parameter is wrong. The error names it, what was given, and what is allowed.",
		example: `limit: "500" is not an integer from 1 to 200.`},
	{code: 401, name: "Unauthorized", always: true, description: "The key is malformed, unknown or revoked, or a path that needs one was called without.",
		example: "Embeddings need an API key.", header: "WWW-Authenticate"},
	{code: 404, name: "NotFound", missing: true, description: "Nothing has this slug.",
		example: "No tool has the slug nobody."},
	{code: 406, name: "NotAcceptable", always: true, description: "`Accept-Encoding` allows no encoding that is served, not even none.",
		example: "None of the encodings that Accept-Encoding allows is served: use identity, gzip, br or zstd."},
	{code: 429, name: "TooManyRequests", always: true, description: "The day's quota is spent.",
		example: "The quota of 100 requests a day is spent.", header: "Retry-After"},
	{code: 500, name: "InternalError", always: true, description: "A mistake of ours. `X-Request-Id` helps us to find it.",
		example: "Something went wrong on our side."},
	{code: 503, name: "Unavailable", always: true, description: "The catalog cannot be read at the moment.",
		example: "The catalog cannot be read at the moment.", header: "Retry-After"},
}

var errorSchema = object{
	{"type", "object"}, {"description", "What went wrong."}, {"required", []string{"error"}},
	{"properties", object{{"error", object{{"type", "string"}, {"description", "One sentence."}}}}},
}

func errorResponses() object {
	var responses object
	for _, status := range errorStatuses {
		headers := []string{"Access-Control-Allow-Origin", "X-Request-Id"}
		if status.header != "" {
			headers = append(headers, status.header)
		}
		responses.add(status.name, object{
			{"description", status.description},
			{"headers", headerRefs(headers)},
			{"content", object{{"application/json", object{
				{"schema", object{{"$ref", "#/components/schemas/Error"}}},
				{"example", object{{"error", status.example}}},
			}}}},
		})
	}
	return responses
}

// headerComponents are the headers of any answer.
var headerComponents = object{
	headerOf("X-Total-Count", "Number of items in the whole list, before pagination.", object{{"type", "integer"}, {"minimum", 0}}, 48),
	headerOf("Link", "Where the other pages are, as RFC 8288 says: `first`, `prev`, `next`, `last`.", text, `<https://palmares.example/api/v1/tools?page=2>; rel="next"`),
	headerOf("X-Service-Updated-At", "Date of the feed that the answer comes from.", object{{"type", "string"}, {"format", "date"}}, "2026-11-10"),
	headerOf("Cache-Control", "How long shared caches may keep the answer.", text, cacheControl),
	headerOf("ETag", "Names the answer's bytes: send it back as `If-None-Match`.", text, exampleTag),
	headerOf("Vary", "What the answer depends on, for caches.", text, vary),
	headerOf("Access-Control-Allow-Origin", "Pages of every origin may read the answer.", text, "*"),
	headerOf("X-Request-Id", "Names the request in our logs.", text, "K3T7Q2QJ6LPYW4BSMWJ5XZ7F2A"),
	headerOf("X-RateLimit-Tier", "The key's tier; only on requests that bear a key.", object{{"type", "string"}, {"enum", []string{"free", "pro"}}}, "free"),
	headerOf("X-RateLimit-Remaining", "Requests left today; only with a key that has a quota.", object{{"type", "integer"}, {"minimum", 0}}, 999),
	headerOf("X-RateLimit-Reset", "When the quota is full again, the next midnight UTC; only with a key that has a quota.", object{{"type", "string"}, {"format", "date-time"}}, "2026-11-16T00:00:00Z"),
	headerOf("Retry-After", "Seconds to wait before trying again.", object{{"type", "integer"}, {"minimum", 0}}, 5),
	headerOf("WWW-Authenticate", "How to say who you are.", text, "Bearer"),
}

const exampleTag = `"BC_Ut5yv4lIkZdDJ110D"`

var text = object{{"type", "string"}}

func headerOf(name, description string, schema object, example any) member {
	return member{name, object{{"description", description}, {"schema", schema}, {"example", example}}}
}

func headerRefs(names []string) object {
	var refs object
	for _, name := range names {
		refs.add(name, object{{"$ref", "#/components/headers/" + name}})
	}
	return refs
}
