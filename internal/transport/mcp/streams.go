package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"palmares/internal/core/params"
)

// maxPending limits the requests that one client runs at the same time. No further
// line is read until one of them is finished, so that a client that sends faster than
// it reads does not use up the memory.
const maxPending = 20

// streams is a connection over standard streams, with a message or a batch on each
// line. The library's own connection ends with the first invalid line, does not
// reply to requests before the end of the input, and reads without a limit.
type streams struct {
	in      io.Closer
	lines   chan line
	maxLine int
	queue   []*jsonrpc.Request // the requests in the last line
	ended   error              // of the input
	slots   chan struct{}      // one for each pending request
	closing sync.Once
	closed  chan struct{}

	mu      sync.Mutex
	out     io.Writer
	lastID  int64
	pending map[int64]*pendingRequest
}

type line struct {
	text    []byte
	tooLong bool
	err     error
}

// pendingRequest is a request without a reply. The library knows it by another ID,
// because it rounds large numbers.
type pendingRequest struct {
	id       jsontext.Value // as the client sent it
	method   string
	batch    *batch // nil outside of batches
	canceled bool
}

// batch collects the replies to the requests of one line.
type batch struct {
	waiting int // requests without a reply
	replies [][]byte
}

// Connect implements sdk.Transport.
func (c *streams) Connect(context.Context) (sdk.Connection, error) { return c, nil }

func newStreams(in io.ReadCloser, out io.Writer, maxLine int64) *streams {
	c := &streams{
		in: in, out: out, lines: make(chan line), maxLine: int(maxLine), slots: make(chan struct{}, maxPending),
		closed: make(chan struct{}), pending: map[int64]*pendingRequest{},
	}
	// Standard input cannot be closed while it is being read, so Read must not wait
	// for it.
	go func() {
		for reader := bufio.NewReader(in); ; {
			next := readLine(reader, c.maxLine)
			select {
			case c.lines <- next:
			case <-c.closed:
				return
			}
			if next.err != nil {
				return
			}
		}
	}()
	return c
}

// readLine reads a line without its end. It skips the text of a line that is too long.
func readLine(from *bufio.Reader, limit int) (l line) {
	for {
		part, err := from.ReadSlice('\n')
		ended := err == nil
		if ended {
			part = part[:len(part)-1]
		}
		if l.tooLong = l.tooLong || len(l.text)+len(part) > limit; l.tooLong {
			l.text = nil
		} else {
			l.text = append(l.text, part...)
		}
		if ended || !errors.Is(err, bufio.ErrBufferFull) {
			l.err = err
			return l
		}
	}
}

// Read implements sdk.Connection. It returns the next request. At the end of the
// input, it first waits until all requests have their replies.
func (c *streams) Read(context.Context) (jsonrpc.Message, error) {
	for len(c.queue) == 0 && c.ended == nil {
		select {
		case <-c.closed:
			return nil, io.EOF
		case next := <-c.lines:
			c.ended = next.err
			if err := c.receive(next); err != nil {
				return nil, err
			}
		}
	}
	wanted := 1
	if len(c.queue) == 0 {
		wanted = maxPending
	} else if !c.queue[0].IsCall() {
		wanted = 0
	}
	for range wanted {
		select {
		case <-c.closed:
			return nil, io.EOF
		case c.slots <- struct{}{}:
		}
	}
	if len(c.queue) == 0 {
		return nil, c.ended
	}
	next := c.queue[0]
	c.queue = c.queue[1:]
	return next, nil
}

// receive adds the requests of a line to the queue, and replies to everything that is
// not a valid request.
func (c *streams) receive(l line) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := jsontext.Value(bytes.Trim(l.text, " \t\r"))
	switch {
	case l.tooLong:
		return c.refuse(nil, nil, newError(jsonrpc.CodeInvalidRequest, "The message is larger than %d bytes.", c.maxLine))
	case len(text) == 0:
		return nil
	case !text.IsValid():
		return c.refuse(nil, nil, newError(jsonrpc.CodeParseError,
			"The line is not valid JSON. Send each message on a line of its own."))
	case text.Kind() != '[':
		return c.accept(text, nil)
	}
	switch n := batchLength(text); {
	case n == 0:
		return c.refuse(nil, nil, newError(jsonrpc.CodeInvalidRequest, "A batch must have at least one message."))
	case n > maxBatch:
		return c.refuse(nil, nil, newError(jsonrpc.CodeInvalidRequest, "A batch may have at most %d messages.", maxBatch))
	}
	var messages []jsontext.Value
	if err := jsonv2.Unmarshal(text, &messages); err != nil {
		return err
	}
	all := &batch{}
	for _, message := range messages {
		if err := c.accept(message, all); err != nil {
			return err
		}
	}
	return c.sendBatch(all)
}

// accept adds a message to the queue if it is a request, or cancels one.
func (c *streams) accept(text jsontext.Value, in *batch) error {
	var m struct {
		Version jsontext.Value `json:"jsonrpc"`
		ID      jsontext.Value `json:"id"`
		Method  jsontext.Value `json:"method"`
		Params  jsontext.Value `json:"params"`
		Result  jsontext.Value `json:"result"`
		Error   jsontext.Value `json:"error"`
	}
	isObject := jsonv2.Unmarshal(text, &m) == nil && text.Kind() == '{'
	method := ""
	isMethod := jsonv2.Unmarshal(m.Method, &method) == nil && m.Method.Kind() == '"'
	id := m.ID
	if !isID(id) {
		id = nil
	}
	if m.Params.Kind() == 'n' {
		m.Params = nil
	}
	invalid := func(code int64, format string, args ...any) error {
		return c.refuse(in, id, newError(code, format, args...))
	}
	switch {
	case !isObject:
		return invalid(jsonrpc.CodeInvalidRequest, "A message must be a JSON object.")
	case string(m.Version) != `"2.0"`:
		return invalid(jsonrpc.CodeInvalidRequest, `jsonrpc must be "2.0".`)
	case m.Method == nil && (m.Result != nil || m.Error != nil):
		return nil // a reply, although the server sends no requests
	case !isMethod:
		return invalid(jsonrpc.CodeInvalidRequest, "method must be a string.")
	case m.ID != nil && id == nil:
		return invalid(jsonrpc.CodeInvalidRequest, "id must be a string or an integer.")
	case m.ID == nil:
		c.notify(method, m.Params)
		return nil
	case strings.HasPrefix(method, notifications):
		return invalid(jsonrpc.CodeInvalidRequest, "%q is a notification and must not have an id.", params.Truncate(method))
	case m.Params != nil && m.Params.Kind() != '{':
		return invalid(jsonrpc.CodeInvalidParams, "params must be an object.")
	}
	c.lastID++
	c.pending[c.lastID] = &pendingRequest{id: id, method: method, batch: in}
	if in != nil {
		in.waiting++
	}
	c.queue = append(c.queue, &jsonrpc.Request{ID: libraryID(c.lastID), Method: method, Params: json.RawMessage(m.Params)})
	return nil
}

// isID reports whether a value is a string or an integer.
func isID(id jsontext.Value) bool {
	return id.Kind() == '"' || id.Kind() == '0' && !bytes.ContainsAny(id, ".eE")
}

const notifications = "notifications/"

// notify forwards the cancellation of a pending request. All other notifications are
// about features that the server does not use.
func (c *streams) notify(method string, about jsontext.Value) {
	var canceled struct {
		ID jsontext.Value `json:"requestId"`
	}
	if method != notifications+"cancelled" || jsonv2.Unmarshal(about, &canceled) != nil {
		return
	}
	for n, p := range c.pending {
		if bytes.Equal(p.id, canceled.ID) && !p.canceled {
			p.canceled = true
			c.queue = append(c.queue, &jsonrpc.Request{Method: method, Params: fmt.Appendf(nil, `{"requestId":%d}`, n)})
		}
	}
}

// refuse replies to a message that is not a valid request. The ID is nil if it is not
// known.
func (c *streams) refuse(in *batch, id jsontext.Value, why *rpcError) error {
	if id == nil {
		id = jsontext.Value("null")
	}
	return c.reply(&pendingRequest{id: id, batch: in}, why.reply(0))
}

// Write implements sdk.Connection.
func (c *streams) Write(_ context.Context, m jsonrpc.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := m.(*jsonrpc.Response)
	if !ok {
		text, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			return err
		}
		return c.send(text)
	}
	n, _ := r.ID.Raw().(int64)
	p := c.pending[n]
	if p == nil {
		return nil
	}
	delete(c.pending, n)
	defer func() { <-c.slots }()
	if p.batch != nil {
		p.batch.waiting--
	}
	if p.canceled { // clients expect no reply
		return c.sendBatch(p.batch)
	}
	if r.Error != nil {
		var own *rpcError
		if !errors.As(r.Error, &own) {
			own = explainRejection(p.method, r.Error)
		}
		r = own.reply(n)
	}
	if err := c.reply(p, r); err != nil {
		return err
	}
	return c.sendBatch(p.batch)
}

// reply sends a reply, or adds it to a batch.
func (c *streams) reply(p *pendingRequest, r *jsonrpc.Response) error {
	text, err := encodeReply(p.id, r)
	if err != nil {
		return err
	}
	if p.batch != nil {
		p.batch.replies = append(p.batch.replies, text)
		return nil
	}
	return c.send(text)
}

// sendBatch sends the replies to a batch once they are complete.
func (c *streams) sendBatch(b *batch) error {
	if b == nil || b.waiting > 0 || len(b.replies) == 0 {
		return nil
	}
	return c.send(slices.Concat([]byte("["), bytes.Join(b.replies, []byte(",")), []byte("]")))
}

func (c *streams) send(text []byte) error {
	_, err := c.out.Write(append(text, '\n'))
	return err
}

// Close implements sdk.Connection.
func (c *streams) Close() (err error) {
	c.closing.Do(func() {
		close(c.closed)
		err = c.in.Close()
	})
	return err
}

// SessionID implements sdk.Connection.
func (c *streams) SessionID() string { return "" }
