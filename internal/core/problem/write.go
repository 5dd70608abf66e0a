package problem

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// retryAfter is when to try again what is not there at the moment, in seconds.
const retryAfter = "5"

// Write answers with an error, the one way that everything but GraphQL does.
// Headers that belong to a good answer are taken back.
func Write(w http.ResponseWriter, err error) {
	p := Of(err)
	write(w, p, map[string]any{"error": p.Message})
}

// Refuse answers a request that goes no further, whatever it was for: a
// GraphQL client finds the error where it looks for it, too.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.URL.Path != "/graphql" {
		Write(w, err)
		return
	}
	p := Of(err)
	extensions := map[string]any{"code": p.Code}
	if id := RequestID(r.Context()); id != "" {
		extensions["requestId"] = id
	}
	write(w, p, map[string]any{"error": p.Message, "errors": []any{map[string]any{"message": p.Message, "extensions": extensions}}})
}

func write(w http.ResponseWriter, p *Problem, answer map[string]any) {
	header := w.Header()
	for _, name := range []string{"ETag", "Content-Encoding", "X-Total-Count", "Link"} {
		header.Del(name)
	}
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	status := p.Code.Status()
	switch status {
	case http.StatusUnauthorized:
		header.Set("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable:
		header.Set("Retry-After", retryAfter)
	}
	body := encode(answer)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// encode escapes nothing that need not be.
func encode(answer map[string]any) []byte {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer); err != nil {
		panic(err) // texts can always be encoded
	}
	return bytes.TrimRight(body.Bytes(), "\n")
}
