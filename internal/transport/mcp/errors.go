package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"palmares/internal/core/params"
	"palmares/internal/core/problem"
)

// rpcError is a JSON-RPC error in our own words. All other errors are the library's,
// whose words mention its types.
type rpcError jsonrpc.Error

func (e *rpcError) Error() string { return e.Message }

func newError(code int64, format string, args ...any) *rpcError {
	return &rpcError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// reply returns the error as the reply to a request.
func (e *rpcError) reply(id int64) *jsonrpc.Response {
	return &jsonrpc.Response{ID: libraryID(id), Error: (*jsonrpc.Error)(e)}
}

func libraryID(n int64) jsonrpc.ID {
	id, err := jsonrpc.MakeID(float64(n))
	if err != nil {
		panic(err) // numbers are IDs
	}
	return id
}

// encodeReply encodes a reply with the ID that the client sent: the library rounds
// large numbers.
func encodeReply(id jsontext.Value, r *jsonrpc.Response) ([]byte, error) {
	text, err := jsonrpc.EncodeMessage(r)
	rest := bytes.TrimPrefix(text, fmt.Appendf(nil, "%s%d", replyStart, r.ID.Raw()))
	return slices.Concat([]byte(replyStart), id, rest), err
}

// codeQuota is the JSON-RPC code of a message over the quota or a limit.
const codeQuota = -32000

// explain returns the error of a method in our own words.
func explain(method string, request sdk.Request, err error) *rpcError {
	var own *rpcError
	if errors.As(err, &own) {
		return own
	}
	if errors.Is(err, context.Canceled) {
		return newError(jsonrpc.CodeInternalError, "The request was canceled.")
	}
	switch request := request.(type) {
	case *sdk.CallToolRequest:
		return newError(jsonrpc.CodeInvalidParams,
			"There is no tool %q. Call tools/list for all tools.", params.Truncate(request.Params.Name))
	case *sdk.GetPromptRequest:
		return newError(jsonrpc.CodeInvalidParams,
			"There is no prompt %q. Call prompts/list for all prompts.", params.Truncate(request.Params.Name))
	case *sdk.ReadResourceRequest:
		uri := request.Params.URI
		return errNoResource(uri, fmt.Sprintf("There is no resource %q. Call resources/list for all resources.", params.Truncate(uri)))
	}
	switch {
	case method == "initialize":
		return newError(jsonrpc.CodeInvalidRequest, "The session is already initialized.")
	case strings.HasSuffix(method, "/list"):
		return newError(jsonrpc.CodeInvalidParams, "cursor is invalid. Omit it to start with the first page.")
	case errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound}):
		return errNotAvailable(method)
	case errors.Is(err, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams}):
		return errInvalidParams(method)
	}
	return newError(jsonrpc.CodeInternalError, "%s", problem.Of(err).Message)
}

// explainRejection returns the error of a request that the library rejected before it
// reached its method.
func explainRejection(method string, err error) *rpcError {
	var rejection *jsonrpc.Error
	if !errors.As(err, &rejection) {
		rejection = &jsonrpc.Error{}
	}
	switch {
	case rejection.Code == 0 && method == "initialize", rejection.Code == jsonrpc.CodeInvalidParams:
		return errInvalidParams(method)
	case rejection.Code == 0:
		return newError(jsonrpc.CodeInvalidRequest,
			"The session is not initialized. Send initialize before %q.", params.Truncate(method))
	case rejection.Code == jsonrpc.CodeMethodNotFound:
		return errNotAvailable(method)
	case rejection.Code == jsonrpc.CodeInvalidRequest:
		return newError(jsonrpc.CodeInvalidRequest, "The method %q requires params.", params.Truncate(method))
	case rejection.Code == sdk.CodeUnsupportedProtocolVersion:
		return &rpcError{Code: rejection.Code, Message: "The server does not support this revision of the protocol.", Data: rejection.Data}
	}
	return newError(rejection.Code, "%s", problem.Of(err).Message)
}

func errNotAvailable(method string) *rpcError {
	return newError(jsonrpc.CodeMethodNotFound, "The method %q is not available.", params.Truncate(method))
}

func errInvalidParams(method string) *rpcError {
	return newError(jsonrpc.CodeInvalidParams,
		"The params of %q are incomplete or have a wrong type. See https://modelcontextprotocol.io/specification for its schema.",
		params.Truncate(method))
}

func errNoResource(uri, message string) *rpcError {
	data, _ := json.Marshal(map[string]string{"uri": uri}) // strings can always be encoded
	return &rpcError{Code: jsonrpc.CodeInvalidParams, Message: message, Data: data}
}
