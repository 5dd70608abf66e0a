package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"

	"palmares/internal/core/cache"
	"palmares/internal/core/problem"
)

// persisted caches documents by their hash, so that clients need not send them
// again: automatic persisted queries.
type persisted struct{ queries *cache.Table[string] }

const codeNotPersisted problem.Code = "PERSISTED_QUERY_NOT_FOUND"

// fill finds the document that a request only names, and checks the hash of
// one that it brings. It returns the hash, or "" for other requests.
func (p persisted) fill(req *httpRequest) (hash string, refusal *httpProblem) {
	hash, refusal = hashOf(req)
	if hash == "" || refusal != nil {
		return "", refusal
	}
	if req.Query != "" {
		if sum := sha256.Sum256([]byte(req.Query)); hash != hex.EncodeToString(sum[:]) {
			return "", badRequest("persistedQuery: sha256Hash is not the hash of the query.")
		}
		return hash, nil
	}
	query, known := p.queries.Get(cache.Timeless, cache.Question{Operation: hash})
	if !known {
		// Clients recognise exactly this message, and send the document.
		return "", &httpProblem{http.StatusOK, &problem.Problem{Code: codeNotPersisted, Message: "PersistedQueryNotFound"}}
	}
	req.Query = query
	return hash, nil
}

// keep caches the document of a request that was executed.
func (p persisted) keep(hash, query string) {
	p.queries.Put(cache.Timeless, cache.Question{Operation: hash}, query, len(query))
}

// hashOf is the hash that a request names, or "" for none.
func hashOf(req *httpRequest) (string, *httpProblem) {
	extension := req.Extensions["persistedQuery"]
	if extension == nil {
		return "", nil
	}
	object, _ := extension.(map[string]any)
	version, _ := object["version"].(json.Number)
	hash, _ := object["sha256Hash"].(string)
	if version != "1" || len(hash) != hex.EncodedLen(sha256.Size) {
		return "", badRequest("persistedQuery: must have version 1 and a sha256Hash.")
	}
	return hash, nil
}
