package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"palmares/internal/core/problem"
)

// httpRequest is a GraphQL request as HTTP carries it.
type httpRequest struct {
	Request
	Extensions map[string]any
}

// httpProblem is a request that is refused before it is one.
type httpProblem struct {
	status  int
	problem *problem.Problem
}

func badRequest(format string, args ...any) *httpProblem {
	return &httpProblem{http.StatusBadRequest, problem.New(problem.BadInput, format, args...)}
}

// maxURL bounds the query of a GET as the body of a POST is bounded.
const maxURL = 32 << 10

// sentText is a request as it was sent: its query string, or its body.
func sentText(w http.ResponseWriter, r *http.Request, limit int64) (string, *httpProblem) {
	if r.Method != http.MethodPost {
		if len(r.URL.RawQuery) > maxURL {
			return "", &httpProblem{http.StatusRequestURITooLong, problem.New(problem.TooLarge, "The address is too long: use POST.")}
		}
		return r.URL.RawQuery, nil
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return "", &httpProblem{http.StatusUnsupportedMediaType, problem.New(problem.BadInput, "The body must not be compressed.")}
	}
	if !isJSON(r.Header.Get("Content-Type")) {
		return "", &httpProblem{http.StatusUnsupportedMediaType, problem.New(problem.BadInput, "The body must be application/json in UTF-8.")}
	}
	tooLarge := &httpProblem{http.StatusRequestEntityTooLarge, problem.New(problem.TooLarge, "The request body is larger than %d bytes.", limit)}
	if r.ContentLength > limit {
		return "", tooLarge // before reading, which makes net/http send "100 Continue"
	}
	var body strings.Builder
	body.Grow(int(max(r.ContentLength, 0)))
	_, err := io.Copy(&body, http.MaxBytesReader(w, r.Body, limit))
	var cut *http.MaxBytesError
	switch {
	case errors.As(err, &cut):
		return "", tooLarge
	case err != nil:
		return "", badRequest("The body cannot be read.")
	}
	return body.String(), nil
}

func requestFromURL(query string) (*httpRequest, *httpProblem) {
	params, err := url.ParseQuery(query)
	if err != nil {
		return nil, badRequest("The parameters cannot be read.")
	}
	object := map[string]json.RawMessage{}
	for _, name := range []string{"query", "operationName", "variables", "extensions"} {
		values := params[name]
		switch {
		case len(values) == 0 || values[0] == "":
			continue
		case len(values) > 1:
			return nil, badRequest("%s: is given twice.", name)
		case !utf8.ValidString(values[0]):
			return nil, badRequest("%s: is not valid UTF-8.", name)
		}
		if name == "variables" || name == "extensions" {
			object[name] = json.RawMessage(values[0])
			if problem := checkJSON(object[name]); problem != nil {
				return nil, badRequest("%s: is not valid JSON.", name)
			}
			continue
		}
		object[name], _ = json.Marshal(values[0])
	}
	return requestFrom(object)
}

func requestFromBody(body []byte) (*httpRequest, *httpProblem) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, badRequest("The body is empty.")
	}
	if problem := checkJSON(body); problem != nil {
		return nil, problem
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(body, &object) != nil || object == nil {
		return nil, badRequest("The body must be one JSON object: batches are not served.")
	}
	return requestFrom(object)
}

func isJSON(contentType string) bool {
	if contentType == mediaJSON { // almost always
		return true
	}
	media, params, err := mime.ParseMediaType(contentType)
	charset, given := params["charset"]
	return err == nil && media == mediaJSON && (!given || strings.EqualFold(charset, "utf-8"))
}

// checkJSON is exact where encoding/json is lenient: no key twice, nothing
// after the value, valid UTF-8. What was sent is never repeated.
func checkJSON(data []byte) *httpProblem {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	if _, err := dec.ReadValue(); err != nil {
		return badRequest("The body is not valid JSON.")
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return badRequest("The body has more after its JSON value.")
	}
	return nil
}

// requestFrom reads the four members that a request may have.
func requestFrom(object map[string]json.RawMessage) (*httpRequest, *httpProblem) {
	req := &httpRequest{}
	for _, member := range []struct {
		name, kind string
		into       any
	}{
		{"query", "text", &req.Query},
		{"operationName", "text", &req.OperationName},
		{"variables", "an object", &req.Variables},
		{"extensions", "an object", &req.Extensions},
	} {
		value, given := object[member.name]
		if !given || string(value) == "null" {
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(value))
		dec.UseNumber() // integers stay exact
		if dec.Decode(member.into) != nil {
			return nil, badRequest("%s: must be %s.", member.name, member.kind)
		}
	}
	if req.Query == "" && req.Extensions["persistedQuery"] == nil {
		return nil, badRequest("query: is missing.")
	}
	return req, nil
}
