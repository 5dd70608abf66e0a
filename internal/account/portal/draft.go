package portal

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"io"

	"palmares/internal/account/oauth"
	"palmares/internal/core/problem"
	"palmares/internal/transport/saved"
)

// maxDraft is how long a draft can be, in characters: like the request of an application,
// it becomes part of the link in a sign-in email.
const maxDraft = oauth.MaxQuery - 50

// draft is a query of the explorer that is not saved yet.
type draft struct {
	Query     string `json:"query"`
	Variables string `json:"variables,omitempty"`
}

// encodeDraft returns a query and its variables in a form that needs no escaping in a URL.
// Text in GraphQL compresses to a third of its length.
func encodeDraft(query, variables string) (string, error) {
	text, err := json.Marshal(draft{query, variables})
	if err != nil {
		return "", err
	}
	var compressed bytes.Buffer
	w, err := flate.NewWriter(&compressed, flate.BestCompression)
	if err != nil {
		return "", err
	}
	_, _ = w.Write(text) // to memory
	_ = w.Close()
	encoded := base64.RawURLEncoding.EncodeToString(compressed.Bytes())
	if len(encoded) > maxDraft {
		return "", problem.New(problem.TooLarge, "This query is too long to keep while you sign in. Sign in first, then return to the explorer and save it.")
	}
	return encoded, nil
}

// decodeDraft returns nothing for a draft that encodeDraft did not return.
func decodeDraft(encoded string) (query, variables string) {
	compressed, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || len(encoded) > maxDraft {
		return "", ""
	}
	// A short draft could decompress to a very long text.
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(compressed)), 2*saved.MaxDocument))
	var d draft
	if err != nil || json.Unmarshal(text, &d) != nil {
		return "", ""
	}
	return d.Query, d.Variables
}
