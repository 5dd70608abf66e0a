package graphql

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"palmares/graph"
	"palmares/internal/core/middleware"
	"palmares/internal/core/negotiate"
	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

const (
	mediaJSON     = "application/json"
	mediaResponse = "application/graphql-response+json"
	mediaStream   = "text/event-stream"
)

// negotiateMedia returns the best media type for a response, or "" if none is
// accepted, and whether server-sent events are, which a wildcard does not include.
func negotiateMedia(accept []string) (media string, streaming bool) {
	streaming = negotiate.Named(accept, mediaStream) > 0
	if negotiate.Named(accept, mediaResponse) > 0 {
		return negotiate.Accepts(accept, mediaResponse, mediaJSON), streaming
	}
	return negotiate.Accepts(accept, mediaJSON, mediaResponse), streaming // old clients expect JSON by default
}

// httpRequest is a GraphQL request over HTTP.
type httpRequest struct {
	graph.Request
	Extensions map[string]any
}

// httpProblem is the error response to an invalid GraphQL request.
type httpProblem struct {
	status  int
	problem *problem.Problem
}

func httpError(status int, code problem.Code, format string, args ...any) *httpProblem {
	return &httpProblem{status: status, problem: problem.New(code, format, args...)}
}

func badRequest(format string, args ...any) *httpProblem {
	return httpError(http.StatusBadRequest, problem.BadInput, format, args...)
}

// maxQueryString limits a GET as the body of a POST is limited.
const maxQueryString = 32 << 10

// readRequest returns the query string of a GET, or the body of a POST or QUERY.
func readRequest(w http.ResponseWriter, r *http.Request, limit int64) (string, *httpProblem) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		if len(r.URL.RawQuery) > maxQueryString {
			return "", httpError(http.StatusRequestURITooLong, problem.TooLarge, "The URL is too long. Use POST instead.")
		}
		return r.URL.RawQuery, nil
	case http.MethodPost, middleware.MethodQuery:
	default:
		w.Header().Set("Allow", allowedMethods)
		return "", httpError(http.StatusMethodNotAllowed, problem.BadInput, "The method %s is not allowed; use GET, POST or QUERY.", params.Truncate(r.Method))
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return "", httpError(http.StatusUnsupportedMediaType, problem.BadInput, "The body must not be compressed.")
	}
	if !isJSON(r.Header.Get("Content-Type")) {
		return "", httpError(http.StatusUnsupportedMediaType, problem.BadInput, "The body must be application/json in UTF-8.")
	}
	tooLarge := httpError(http.StatusRequestEntityTooLarge, problem.TooLarge, "The request body is larger than %d bytes.", limit)
	if r.ContentLength > limit {
		return "", tooLarge // reading would make net/http send "100 Continue"
	}
	var body strings.Builder
	body.Grow(int(max(r.ContentLength, 0)))
	_, err := io.Copy(&body, http.MaxBytesReader(w, r.Body, limit))
	var overLimit *http.MaxBytesError
	switch {
	case errors.As(err, &overLimit):
		return "", tooLarge
	case err != nil:
		return "", badRequest("The body cannot be read.")
	}
	return body.String(), nil
}

func isJSON(contentType string) bool {
	if contentType == mediaJSON { // the usual case
		return true
	}
	media, params, err := mime.ParseMediaType(contentType)
	charset, given := params["charset"]
	return err == nil && media == mediaJSON && (!given || strings.EqualFold(charset, "utf-8"))
}

func parseQueryString(query string) (*httpRequest, *httpProblem) {
	params, err := url.ParseQuery(query)
	if err != nil {
		return nil, badRequest("The query string cannot be parsed.")
	}
	object := map[string]json.RawMessage{}
	for _, name := range []string{"query", "operationName", "variables", "extensions"} {
		values := params[name]
		switch {
		case len(values) == 0 || values[0] == "":
			continue
		case len(values) > 1:
			return nil, badRequest("%s must be given only once.", name)
		case !utf8.ValidString(values[0]):
			return nil, badRequest("%s must be valid UTF-8.", name)
		}
		if name == "variables" || name == "extensions" {
			object[name] = json.RawMessage(values[0])
			if p := checkJSON(name, values[0]); p != nil {
				return nil, p
			}
			continue
		}
		object[name], _ = json.Marshal(values[0])
	}
	return parseObject(object)
}

func parseBody(body string) (*httpRequest, *httpProblem) {
	if strings.TrimSpace(body) == "" {
		return nil, badRequest("The body is empty.")
	}
	if p := checkJSON("The body", body); p != nil {
		return nil, p
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(body), &object) != nil || object == nil {
		return nil, badRequest("The body must be a single JSON object. Batches are not supported.")
	}
	return parseObject(object)
}

// checkJSON is stricter than encoding/json: no duplicate keys, nothing after the
// value, valid UTF-8. The error names the text and the position in it.
func checkJSON(name, text string) *httpProblem {
	dec := jsontext.NewDecoder(strings.NewReader(text))
	_, err := dec.ReadValue()
	if err == nil {
		value := int(dec.InputOffset())
		if rest := strings.TrimLeft(text[value:], " \t\r\n"); rest != "" {
			line, column := position(text, len(text)-len(rest))
			return badRequest("%s must end after its JSON value (line %d, column %d).", name, line, column)
		}
		return nil
	}
	at := len(text) // where it ends too early
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) && !errors.Is(err, io.ErrUnexpectedEOF) {
		at = int(syntax.ByteOffset)
	}
	line, column := position(text, at)
	return badRequest("%s is not valid JSON (line %d, column %d).", name, line, column)
}

// position returns the line and the column, in characters, of an offset.
func position(text string, offset int) (line, column int) {
	before := text[:min(offset, len(text))]
	start := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[start:]) + 1
}

// parseObject reads the four members of a request.
func parseObject(object map[string]json.RawMessage) (*httpRequest, *httpProblem) {
	req := &httpRequest{}
	for _, member := range []struct {
		name, kind string
		target     any
	}{
		{"query", "a string", &req.Query},
		{"operationName", "a string", &req.OperationName},
		{"variables", "an object", &req.Variables},
		{"extensions", "an object", &req.Extensions},
	} {
		value, given := object[member.name]
		if !given || string(value) == "null" {
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(value))
		dec.UseNumber() // keeps integers exact
		if dec.Decode(member.target) != nil {
			return nil, badRequest("%s must be %s.", member.name, member.kind)
		}
	}
	if req.Query == "" && req.Extensions["persistedQuery"] == nil {
		return nil, badRequest("query is required.")
	}
	return req, nil
}

const codeNotPersisted problem.Code = "PERSISTED_QUERY_NOT_FOUND"

// findPersisted adds the document of a persisted query to a request that has only
// its hash, or checks the hash of a document in the request.
func (h *Handler) findPersisted(req *httpRequest) *httpProblem {
	extension := req.Extensions["persistedQuery"]
	if extension == nil {
		return nil
	}
	object, _ := extension.(map[string]any)
	version, _ := object["version"].(json.Number)
	hash, _ := object["sha256Hash"].(string)
	if version != "1" || len(hash) != hex.EncodedLen(sha256.Size) {
		return badRequest("persistedQuery must have version 1 and a sha256Hash.")
	}
	if req.Query != "" {
		if sum := sha256.Sum256([]byte(req.Query)); hash != hex.EncodeToString(sum[:]) {
			return badRequest("persistedQuery.sha256Hash must be the SHA-256 hash of the query.")
		}
		return nil
	}
	if req.Query = h.executor.Persisted(hash); req.Query == "" {
		// Clients recognize exactly this message and send the document.
		return httpError(http.StatusOK, codeNotPersisted, "PersistedQueryNotFound")
	}
	return nil
}
