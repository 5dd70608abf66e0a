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
	body := encode(p.Message)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// encode writes the sentence with nothing escaped that need not be.
func encode(message string) []byte {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(struct {
		Error string `json:"error"`
	}{message}); err != nil {
		panic(err) // a text can always be encoded
	}
	return bytes.TrimRight(body.Bytes(), "\n")
}
