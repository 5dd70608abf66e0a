package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"palmares/internal/core/problem"
)

// codeQuota is the JSON-RPC code of a message over the quota or a limit.
const codeQuota = -32000

const notMessage = "This is not a JSON-RPC 2.0 message. See https://modelcontextprotocol.io/specification. Batches are not supported."

func newError(code int64, format string, args ...any) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// explain returns an error of a method for the client, without internal details.
func explain(method string, err error) error {
	var protocol *jsonrpc.Error
	switch {
	case errors.As(err, &protocol):
		return err
	case errors.Is(err, context.Canceled):
		return newError(jsonrpc.CodeInternalError, "The request was canceled.")
	case method == "initialize":
		return newError(jsonrpc.CodeInvalidRequest, "The session is already initialized.")
	}
	return newError(jsonrpc.CodeInternalError, "%s", problem.Of(err).Message)
}

func errNoResource(uri, message string) error {
	data, _ := json.Marshal(map[string]string{"uri": uri}) // strings can always be encoded
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message, Data: data}
}

// errorBody returns an error about a message whose ID is not known.
func errorBody(code int64, words string) []byte {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": newError(code, "%s", words)})
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return body
}
