package cache

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"palmares/internal/core/problem"
)

// streamChunk is how many bytes of a stream are sent at a time.
const streamChunk = 32 << 10

// streamWindow is the base 2 logarithm of how many bytes an encoder of a stream looks
// back, 256 KiB. A slow client holds a multiple of that in memory for a long time.
const streamWindow = 18

// Stream sends an entry's headers with a body that is too long to be cached. The
// entry's own body is not sent, but identifies the content for the ETag. The
// function write writes the body; it is not called for a 304 or a HEAD. If it fails
// before anything was sent, Stream returns its error; after that, the connection is
// closed, so that the client does not mistake a partial response for a complete one.
// The client must read each chunk within the time limit.
func (r Response) Stream(w http.ResponseWriter, req *http.Request, limit time.Duration, write func(io.Writer) error) error {
	if r.executed {
		ReportExecution(w)
	}
	c, ok := negotiateStream(req.Header["Accept-Encoding"])
	if !ok {
		return errNotAcceptable
	}
	tag := r.etag(c)
	out := &streamWriter{to: w, conn: http.NewResponseController(w), limit: limit}
	out.start = func(status int) {
		header := w.Header()
		maps.Copy(header, r.header)
		header["Etag"] = tag
		header["Cache-Status"] = bypass
		switch {
		case status == http.StatusNotModified:
			delete(header, "Content-Type")
			header["Cache-Status"] = r.cacheStatus()
		case c != identity:
			header["Content-Encoding"] = codingHeaders[c]
		}
		w.WriteHeader(status)
	}
	if tags := req.Header["If-None-Match"]; tags != nil && matches(tags, tag[0]) {
		out.start(http.StatusNotModified)
		return nil
	}
	if req.Method == http.MethodHead {
		out.start(http.StatusOK)
		return nil
	}
	err := out.send(c, write)
	switch {
	case err != nil && out.started:
		panic(http.ErrAbortHandler)
	case err == nil && !out.started: // an empty body
		out.start(http.StatusOK)
	}
	return err
}

// streamWriter sends a stream in chunks. The headers are sent with the first chunk.
type streamWriter struct {
	to      http.ResponseWriter
	conn    *http.ResponseController
	limit   time.Duration // for each chunk
	start   func(status int)
	started bool
}

// send encodes and sends what a function writes.
func (s *streamWriter) send(c coding, write func(io.Writer) error) error {
	chunks := bufio.NewWriterSize(s, streamChunk)
	if c == identity {
		if err := write(chunks); err != nil {
			return err
		}
		return chunks.Flush()
	}
	encoder := c.writer(chunks, streamWindow)
	if err := write(&promptWriter{encoder: encoder, chunks: chunks}); err != nil {
		return err
	}
	if err := encoder.Close(); err != nil {
		return err
	}
	return chunks.Flush()
}

// promptWriter encodes a stream. It sends the start without waiting until the encoder
// has enough data for a block, which may be megabytes.
type promptWriter struct {
	encoder encoder
	chunks  *bufio.Writer
	written int
}

// Write implements io.Writer.
func (p *promptWriter) Write(data []byte) (int, error) {
	n, err := p.encoder.Write(data)
	isStart := p.written < streamChunk
	if p.written += n; err != nil || !isStart || p.written < streamChunk {
		return n, err
	}
	if err := p.encoder.Flush(); err != nil {
		return n, err
	}
	return n, p.chunks.Flush()
}

// encoder is implemented by the encoders of all codings.
type encoder interface {
	io.WriteCloser
	Flush() error
}

// Write implements io.Writer.
func (s *streamWriter) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		chunk := p[:min(len(p), streamChunk)]
		// This replaces the server's write timeout for a whole response.
		if err := s.conn.SetWriteDeadline(time.Now().Add(s.limit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return written, err
		}
		if !s.started {
			s.started = true
			s.start(http.StatusOK)
		}
		n, err := s.to.Write(chunk)
		if written += n; err != nil {
			return written, err
		}
		p = p[n:]
	}
	return written, nil
}

// writer returns an encoder that looks back up to 1<<window bytes.
func (c coding) writer(to io.Writer, window int) encoder {
	switch c {
	case brotlied:
		return brotli.NewWriterOptions(to, brotli.WriterOptions{Quality: brotliLevel, LGWin: window})
	case gzipped:
		w, _ := gzip.NewWriterLevel(to, gzipLevel) // fails for levels that do not exist
		return w
	default:
		w, err := zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(1<<window), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(err) // the options above are wrong
		}
		return w
	}
}

// negotiateStream selects the coding that a caller prefers for a long body. Among
// equally preferred ones it selects the fastest, because the body is encoded for each
// caller.
func negotiateStream(headers []string) (coding, bool) {
	wanted := qualities(headers)
	best, found := identity, wanted[identity] > 0
	for _, c := range [...]coding{zstandard, gzipped, brotlied} {
		if wanted[c] > 0 && (!found || wanted[c] > wanted[best] || best == identity && wanted[c] == wanted[best]) {
			best, found = c, true
		}
	}
	return best, found
}

// Header returns the value of one of an entry's headers.
func (e *Entry) Header(name string) string { return e.header.Get(name) }

var errNotAcceptable = problem.New(problem.NotAcceptable, "Accept-Encoding allows none of the encodings that are available: identity, gzip, br and zstd.")
