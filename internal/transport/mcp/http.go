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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
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
	x := &exchange{ResponseWriter: w, request: r, server: s}
	if !s.origins.allow(r.Header["Origin"]) {
		problem.Write(w, problem.New(problem.Forbidden, "Requests from web pages of other origins are not allowed. Send requests without an Origin header, or from %s.", s.cfg.PublicURL))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.cfg.MaxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		x.fail(http.StatusRequestEntityTooLarge, jsonrpc.CodeInvalidRequest, fmt.Sprintf("The request body is larger than %d bytes.", s.cfg.MaxBody))
		return
	}
	if err != nil {
		return // the client disconnected
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	messages, members := batchLength(body), bytes.Count(body, []byte(`":`))
	isCounted := messages == 0 && members <= maxMembers && slices.Contains(countedMethods, methodOf(body))
	if s.cfg.Limit != nil && !isCounted && !s.cfg.Limit(r, max(messages, 1)) { // before parsing
		x.Header().Set("Retry-After", "60")
		x.fail(http.StatusTooManyRequests, codeQuota, "You have sent too many messages within a minute. Try again in a minute. Outside of batches, tools/call and resources/read only count against the quota.")
		return
	}
	switch {
	case messages > maxBatch:
		x.fail(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, fmt.Sprintf("A batch may have at most %d messages.", maxBatch))
		return
	case members > maxMembers:
		x.fail(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, fmt.Sprintf("A request may have at most %d members in its objects.", maxMembers))
		return
	case r.Method == http.MethodPost && !jsontext.Value(body).IsValid():
		x.fail(http.StatusBadRequest, jsonrpc.CodeParseError, "The request body is not valid JSON.")
		return
	}
	edition := s.cfg.Cache.Edition()
	var m message
	_ = jsonv2.Unmarshal(body, &m) // the library reports what is wrong
	key := m.key(r)
	if known, ok := s.replies.Get(edition, key); ok && m.repeatable() && x.countEarly() == nil {
		x.Header().Set("Content-Type", "application/json")
		x.Header().Set("Cache-Control", "no-cache, no-transform")
		fmt.Fprintf(x, `%s%s,"result":%s`, replyStart, m.ID, known)
		x.finish()
		return
	}
	s.http.ServeHTTP(x, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
	x.reword(m.Method)
	if x.needsAccount && s.cfg.Challenge != nil && messages == 0 { // the other calls of a batch have results
		x.Header().Set("WWW-Authenticate", s.cfg.Challenge(r))
		x.status = http.StatusUnauthorized
	}
	x.finish()
	if reply, ok := newReply(x, m); ok && edition == s.cfg.Cache.Edition() && s.cfg.Cache.Newest() > 0 {
		s.replies.Put(edition, key, reply, len(reply)+len(key.Variables))
	}
}

// countedMethods count against the quota. Everything else is limited per minute.
var countedMethods = []string{"tools/call", "resources/read"}

const (
	// maxBatch limits the messages in a batch, because most methods do not count against
	// the quota and all replies are in memory at once.
	maxBatch = 20
	// maxMembers limits the members of all objects in a request. Each has to be compared
	// with the others, so that they cost much more than long texts.
	maxMembers = 1_000
	// maxOthers is how many members may precede the method of a message.
	maxOthers = 10
)

// methodOf returns the method of a message, or "", without decoding the rest of it.
func methodOf(body []byte) string {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))
	if token, err := decoder.ReadToken(); err != nil || token.Kind() != '{' {
		return ""
	}
	for range maxOthers {
		name, err := decoder.ReadToken()
		if err != nil || name.Kind() != '"' {
			return ""
		}
		if name.String() == "method" {
			method, err := decoder.ReadToken()
			if err != nil || method.Kind() != '"' {
				return ""
			}
			return method.String()
		}
		if decoder.SkipValue() != nil {
			return ""
		}
	}
	return ""
}

// batchLength returns the number of messages in a batch, at most maxBatch+1; 0 for a
// single message.
func batchLength(body []byte) (n int) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))
	if decoder.PeekKind() != '[' {
		return 0
	}
	_, err := decoder.ReadToken()
	for ; err == nil && decoder.PeekKind() != ']' && n <= maxBatch; n++ {
		err = decoder.SkipValue()
	}
	return n
}

// message is a JSON-RPC message. A batch has no method.
type message struct {
	ID     jsontext.Value `json:"id"`
	Method string         `json:"method"`
	Others jsontext.Value `json:",inline"`
}

// usualID matches the IDs that the library writes unchanged.
var usualID = regexp.MustCompile(`^("[A-Za-z0-9_-]{0,97}"|0|[1-9][0-9]{0,14})$`)

// repeatable reports whether the reply to a message depends only on the message and
// the catalog.
func (m message) repeatable() bool { return m.Method == "tools/call" && usualID.Match(m.ID) }

// key identifies equal messages, regardless of their ID. It includes the headers
// that the library checks.
func (m message) key(r *http.Request) cache.Key {
	headers := r.Method + "\n" + r.Host
	for _, name := range []string{"Content-Type", "Accept", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Last-Event-Id"} {
		headers += "\n" + strings.Join(r.Header[name], ",")
	}
	return cache.Key{Operation: headers, Variables: string(m.Others), Keyed: auth.CallerFrom(r.Context()).MayReadEmbeddings()}
}

// reply is the reply to a call, after the ID of the call.
type reply []byte

const replyStart = `{"jsonrpc":"2.0","id":`

// newReply returns the reply of an exchange if it can be repeated, which errors
// cannot.
func newReply(x *exchange, m message) (reply, bool) {
	rest, ok := bytes.CutPrefix(x.body.Bytes(), []byte(replyStart+string(m.ID)+`,"result":`))
	return bytes.Clone(rest), ok && m.repeatable() && x.status == http.StatusOK && !bytes.Contains(rest, []byte(`"isError":true`))
}

// exchange is one HTTP request and its response. It counts the calls in the
// request, and converts the library's plain-text errors to JSON-RPC.
type exchange struct {
	http.ResponseWriter
	request *http.Request
	server  *Server
	status  int
	body    bytes.Buffer

	counting sync.Mutex // calls of a batch run concurrently
	finished bool       // the response is sent, or the client disconnected
	counted  bool       // a call is already counted, with this outcome
	outcome  error
	failure  *rpcError // why the last failed call failed

	needsAccount bool // a call failed because the caller has no account
}

type exchangeKey struct{}

// exchangeFrom returns the exchange of a call, or nil over standard streams.
func exchangeFrom(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// countEarly counts a call before ServeHTTP decides whether the library handles it.
func (x *exchange) countEarly() error {
	x.outcome = x.count()
	x.counted = true
	return x.outcome
}

// count counts a call, unless countEarly already did.
func (x *exchange) count() error {
	if x == nil || x.server.cfg.Count == nil {
		return nil
	}
	x.counting.Lock()
	defer x.counting.Unlock()
	switch {
	case x.finished:
		return context.Canceled // no one is waiting for the result
	case x.counted:
		x.counted = false
		return x.outcome
	}
	return x.server.cfg.Count(x.ResponseWriter, x.request)
}

// requireAccount records that a call requires an account.
func (x *exchange) requireAccount() {
	if x != nil {
		x.counting.Lock()
		defer x.counting.Unlock()
		x.needsAccount = true
	}
}

// explained returns an error of a call for the library. Over HTTP, the library encodes
// it, and adds its own words to some: see reword.
func (x *exchange) explained(why *rpcError) error {
	if x == nil {
		return why
	}
	x.counting.Lock()
	defer x.counting.Unlock()
	x.failure = why
	return (*jsonrpc.Error)(why)
}

// reword replaces the library's words in the error of a single message.
func (x *exchange) reword(method string) {
	if x.status != http.StatusOK || bytes.Contains(x.body.Bytes(), []byte(`,"result":`)) {
		return
	}
	var reply struct {
		ID    jsontext.Value `json:"id"`
		Error *jsonrpc.Error `json:"error"`
	}
	if jsonv2.Unmarshal(x.body.Bytes(), &reply) != nil || reply.Error == nil {
		return
	}
	x.counting.Lock()
	defer x.counting.Unlock()
	if x.failure == nil {
		x.failure = explainRejection(method, reply.Error)
	}
	if text, err := encodeReply(reply.ID, x.failure.reply(0)); err == nil {
		x.body.Reset()
		x.body.Write(text)
	}
}

// WriteHeader implements http.ResponseWriter.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
	}
}

// Write implements http.ResponseWriter. The response is sent by finish.
func (x *exchange) Write(data []byte) (int, error) {
	x.WriteHeader(http.StatusOK)
	return x.body.Write(data)
}

// finish sends the response.
func (x *exchange) finish() {
	x.counting.Lock()
	defer x.counting.Unlock()
	x.finished = true
	header := x.Header()
	if x.status >= http.StatusBadRequest && !strings.HasPrefix(header.Get("Content-Type"), "application/json") {
		code, words := int64(jsonrpc.CodeInvalidRequest), strings.TrimSpace(x.body.String())
		switch {
		case strings.HasPrefix(words, "malformed payload"):
			words = "The request body is not a valid JSON-RPC message."
		case strings.HasSuffix(words, "unsupported"):
			code, words = jsonrpc.CodeMethodNotFound, "There is no such method."
		case x.status == http.StatusMethodNotAllowed:
			words = "Send messages with POST. " + x.server.cfg.PublicURL + "/guides/agents explains how to connect a client."
		}
		x.fail(x.status, code, words)
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
func (x *exchange) fail(status int, code int64, words string) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": words}})
	if err != nil {
		panic(err) // strings can always be encoded
	}
	header := x.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	x.ResponseWriter.WriteHeader(status)
	_, _ = x.ResponseWriter.Write(body)
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
