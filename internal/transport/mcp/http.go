package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"palmares/auth"
	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

// newHandler returns the library's handler: without sessions, so that any server
// can handle any request, and without streams.
func (s *Server) newHandler() http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.server }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: s.cfg.MaxBody,
		// A proxy on the same machine forwards requests with the public host.
		DisableLocalhostProtection: !s.origins.local,
		Logger:                     slog.New(slog.DiscardHandler),
	})
}

// ServeHTTP handles one request. A repeated call gets its cached reply without the
// library, whose decoding and encoding cost more than everything else.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.origins.allow(r.Header["Origin"]) {
		problem.Write(w, problem.New(problem.Forbidden, "Requests from web pages of other origins are not allowed. Send requests without an Origin header, or from %s.", s.cfg.PublicURL))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.cfg.MaxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		fail(w, http.StatusRequestEntityTooLarge, jsonrpc.CodeInvalidRequest, fmt.Sprintf("The request body is larger than %d bytes.", s.cfg.MaxBody))
		return
	}
	if err != nil {
		return // the client disconnected
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	members, message := bytes.Count(body, []byte(`":`)), &jsonrpc.Request{}
	if members <= maxMembers && r.Method == http.MethodPost {
		var decoded jsonrpc.Message
		decoded, err = jsonrpc.DecodeMessage(body)
		if request, ok := decoded.(*jsonrpc.Request); ok {
			message = request
		}
	}
	x := &exchange{ResponseWriter: w, method: message.Method}
	isCounted := message.IsCall() && slices.Contains(countedMethods, message.Method)
	if isCounted && s.cfg.Count != nil {
		x.refusal = s.cfg.Count(w, r)
	}
	if !isCounted && s.cfg.Limit != nil && !s.cfg.Limit(r) {
		w.Header().Set("Retry-After", "60")
		fail(w, http.StatusTooManyRequests, codeQuota, "You have sent too many messages within a minute. Try again in a minute. Calls of tools/call and resources/read only count against the quota.")
		return
	}
	switch {
	case members > maxMembers:
		fail(w, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, fmt.Sprintf("A request may have at most %d members in its objects.", maxMembers))
		return
	case r.Method == http.MethodPost && !jsontext.Value(body).IsValid():
		fail(w, http.StatusBadRequest, jsonrpc.CodeParseError, "The request body is not valid JSON.")
		return
	case err != nil:
		fail(w, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, notMessage)
		return
	}
	edition, key := s.cfg.Cache.Edition(), replyKey(r, message)
	repeatable := isCounted && message.Method == "tools/call" && x.refusal == nil
	if known, ok := s.replies.Get(edition, key); ok && repeatable {
		id, err := json.Marshal(message.ID.Raw())
		if err != nil {
			panic(err) // IDs are strings and numbers
		}
		x.Header().Set("Content-Type", "application/json")
		x.Header().Set("Cache-Control", "no-cache, no-transform")
		fmt.Fprintf(x, `{"jsonrpc":"2.0","id":%s%s%s`, id, resultStart, known)
		x.finish(s)
		return
	}
	s.http.ServeHTTP(x, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
	if x.needsAccount.Load() && s.cfg.Challenge != nil {
		x.Header().Set("WWW-Authenticate", s.cfg.Challenge(r))
		x.status = http.StatusUnauthorized
	}
	x.finish(s)
	_, result, ok := bytes.Cut(x.body.Bytes(), []byte(resultStart))
	if ok && repeatable && x.status == http.StatusOK && !bytes.Contains(result, []byte(`"isError":true`)) &&
		edition == s.cfg.Cache.Edition() && s.cfg.Cache.Newest() > 0 {
		s.replies.Put(edition, key, bytes.Clone(result), len(result)+len(key.Variables))
	}
}

// resultStart separates the ID of a reply, in which quotes are escaped, from its result.
const resultStart = `,"result":`

// countedMethods count against the quota. Everything else is limited per minute.
var countedMethods = []string{"tools/call", "resources/read"}

// knownMethods are the methods of the protocol that clients call. For some, the library
// replies that the server does not offer them.
var knownMethods = append([]string{
	"completion/complete", "initialize", "logging/setLevel", "ping", "prompts/get", "prompts/list", "resources/list",
	"resources/subscribe", "resources/templates/list", "resources/unsubscribe", "server/discover", "subscriptions/listen", "tools/list",
}, countedMethods...)

// maxMembers limits the members of all objects in a request. Each has to be compared
// with the others, so that they cost much more than long texts.
const maxMembers = 1_000

// replyKey identifies equal messages, regardless of their ID. It includes the headers
// that the library checks.
func replyKey(r *http.Request, message *jsonrpc.Request) cache.Key {
	headers := r.Host
	for _, name := range []string{"Content-Type", "Accept", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Last-Event-Id"} {
		headers += "\n" + strings.Join(r.Header[name], ",")
	}
	return cache.Key{Operation: headers, Variables: string(message.Params), Keyed: auth.CallerFrom(r.Context()).MayReadEmbeddings()}
}

// exchange is one HTTP request and its response, which finish sends.
type exchange struct {
	http.ResponseWriter
	method       string
	status       int
	body         bytes.Buffer
	refusal      error       // why the call does not run: the quota is used up
	needsAccount atomic.Bool // the call failed because the caller has no account
}

type exchangeKey struct{}

// exchangeFrom returns the exchange of a call. It is empty over standard streams.
func exchangeFrom(ctx context.Context) *exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{}
}

// WriteHeader implements http.ResponseWriter.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
	}
}

// Write implements http.ResponseWriter.
func (x *exchange) Write(data []byte) (int, error) {
	x.WriteHeader(http.StatusOK)
	return x.body.Write(data)
}

// finish sends the response. It converts the library's plain-text errors to JSON-RPC.
func (x *exchange) finish(s *Server) {
	header := x.Header()
	if x.status >= http.StatusBadRequest && !strings.HasPrefix(header.Get("Content-Type"), "application/json") {
		code, words := int64(jsonrpc.CodeInvalidRequest), strings.TrimSpace(x.body.String())
		switch {
		case x.status == http.StatusMethodNotAllowed:
			words = "Send messages with POST. " + s.cfg.PublicURL + "/guides/agents explains how to connect a client."
		case x.status == http.StatusBadRequest && x.method != "" && !strings.HasPrefix(x.method, "notifications/") && !slices.Contains(knownMethods, x.method):
			code, words = jsonrpc.CodeMethodNotFound, "There is no such method."
		}
		fail(x.ResponseWriter, x.status, code, words)
		return
	}
	if x.body.Len() > 0 {
		header.Set("Content-Length", strconv.Itoa(x.body.Len()))
	}
	if x.status > 0 {
		x.ResponseWriter.WriteHeader(x.status)
	}
	_, _ = x.ResponseWriter.Write(x.body.Bytes())
}

// fail sends a JSON-RPC error for a request that reached no method.
func fail(w http.ResponseWriter, status int, code int64, words string) {
	body := errorBody(code, words)
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// origins are the origins of pages that may call the server. Without this check, a
// page could use DNS rebinding to reach a server on the reader's own machine.
type origins struct {
	allowed []string
	local   bool // the server is only for this machine, whose other pages may call it too
}

func newOrigins(urls ...string) (o origins) {
	for i, address := range urls {
		if u, err := url.Parse(address); err == nil {
			o.allowed = append(o.allowed, u.Scheme+"://"+u.Host)
			o.local = o.local || i == 0 && isLoopback(u.Hostname())
		}
	}
	return o
}

// allow reports whether requests with these Origin headers are allowed. Programs
// other than browsers send none.
func (o origins) allow(headers []string) bool {
	for _, origin := range headers {
		u, err := url.Parse(origin)
		known := err == nil && o.local && (u.Scheme == "http" || u.Scheme == "https") && isLoopback(u.Hostname())
		for _, allowed := range o.allowed {
			known = known || strings.EqualFold(origin, allowed)
		}
		if !known {
			return false
		}
	}
	return true
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
