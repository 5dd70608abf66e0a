package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxPending limits the requests that one client runs at the same time. No further
// line is read until one of them is finished, so that a client that sends faster than
// it reads does not use up the memory.
const maxPending = 20

// stdio is the input and output of the SDK's transport, which would end with the first
// invalid line, and cancel pending requests at the end of the input.
type stdio struct {
	in    io.Closer
	lines *bufio.Reader // its buffer is as large as the largest line
	line  []byte        // the part of the current line that Read has not returned

	mu      sync.Mutex
	changed *sync.Cond
	out     io.Writer
	pending map[jsonrpc.ID]bool // the requests without a reply
	closed  bool
}

func newStdio(in io.ReadCloser, out io.Writer, maxLine int64) *stdio {
	c := &stdio{in: in, lines: bufio.NewReaderSize(in, int(maxLine)+1), out: out, pending: map[jsonrpc.ID]bool{}}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// Read implements io.Reader. It returns only valid messages. At the end of the input,
// it first waits until all requests have their replies.
func (c *stdio) Read(p []byte) (n int, err error) {
	for len(c.line) == 0 && err == nil {
		err = c.next()
	}
	n = copy(p, c.line)
	c.line = c.line[n:]
	return n, err
}

// next reads a line. If it is not a message, next replies with an error.
func (c *stdio) next() error {
	text, err := c.lines.ReadSlice('\n')
	tooLong := errors.Is(err, bufio.ErrBufferFull)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = c.lines.ReadSlice('\n')
	}
	text = bytes.Trim(text, " \t\r\n")
	switch {
	case tooLong:
		return c.refuse(jsonrpc.CodeInvalidRequest, fmt.Sprintf("The message is larger than %d bytes.", c.lines.Size()-1))
	case len(text) == 0 && err != nil:
		if closed := c.wait(func() bool { return len(c.pending) == 0 }); closed != nil {
			return closed
		}
		return err
	case len(text) == 0:
		return nil
	case !jsontext.Value(text).IsValid():
		return c.refuse(jsonrpc.CodeParseError, "The line is not valid JSON. Send each message on a line of its own.")
	}
	message, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		return c.refuse(jsonrpc.CodeInvalidRequest, notMessage)
	}
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
		// The SDK drops a request with the ID of a pending one.
		if err := c.wait(func() bool { return len(c.pending) < maxPending && !c.pending[request.ID] }); err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pending[request.ID] = true
	}
	c.line = append(bytes.Clone(text), '\n')
	return nil
}

// wait waits until enough requests have their replies.
func (c *stdio) wait(enough func() bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !enough() && !c.closed {
		c.changed.Wait()
	}
	if c.closed {
		return io.EOF
	}
	return nil
}

// refuse replies to a line that is not a message.
func (c *stdio) refuse(code int64, words string) error {
	_, err := c.Write(append(errorBody(code, words), '\n'))
	return err
}

// Write implements io.Writer. The transport writes one reply at a time.
func (c *stdio) Write(reply []byte) (int, error) {
	message, _ := jsonrpc.DecodeMessage(reply) // errors about no request have no valid ID
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := message.(*jsonrpc.Response); ok {
		delete(c.pending, r.ID)
		c.changed.Broadcast()
	}
	return c.out.Write(reply)
}

// Close implements io.Closer. The transport closes its reader and its writer.
func (c *stdio) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	c.changed.Broadcast()
	return c.in.Close()
}
