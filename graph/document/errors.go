package document

import (
	"github.com/vektah/gqlparser/v2/gqlerror"

	"palmares/internal/core/problem"
)

// Codes of errors that only exist in GraphQL.
const (
	codeParseFailed      = "GRAPHQL_PARSE_FAILED"
	codeValidationFailed = "GRAPHQL_VALIDATION_FAILED"
)

// These limits keep error responses from being much larger than the document.
const (
	maxErrors        = 10
	maxMessageLength = 500
)

// InvalidDocument reports whether errors say that a document cannot be parsed or does
// not match the schema.
func InvalidDocument(errs gqlerror.List) bool {
	code := Code(errs)
	return code == codeParseFailed || code == codeValidationFailed
}

// Code returns the code of the first error, which determines the HTTP status.
func Code(errs gqlerror.List) string {
	if len(errs) == 0 {
		return ""
	}
	code, _ := errs[0].Extensions["code"].(string)
	return code
}

// Errors converts a problem to GraphQL errors.
func Errors(p *problem.Problem) gqlerror.List {
	return gqlerror.List{{Err: p, Message: p.Message, Extensions: map[string]any{"code": string(p.Code)}}}
}

// withCode adds a code to errors of the parser or validator and truncates them.
func withCode(code string, errs gqlerror.List) gqlerror.List {
	errs = errs[:min(len(errs), maxErrors)]
	for _, err := range errs {
		if message := []rune(err.Message); len(message) > maxMessageLength {
			err.Message = string(message[:maxMessageLength]) + "…"
		}
		err.Locations = err.Locations[:min(len(err.Locations), maxErrors)]
		SetExtension(err, "code", code)
	}
	return errs
}

// SetExtension sets an extension of an error.
func SetExtension(err *gqlerror.Error, name, value string) {
	if err.Extensions == nil {
		err.Extensions = map[string]any{}
	}
	err.Extensions[name] = value
}
