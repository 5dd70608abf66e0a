package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"

	lru "github.com/hashicorp/golang-lru/v2"

	"palmares/internal/problem"
)

// persisted keeps documents by their hash, so that clients need not send them
// again: automatic persisted queries.
type persisted struct{ kept *lru.Cache[string, string] }

const codeNotPersisted problem.Code = "PERSISTED_QUERY_NOT_FOUND"

func newPersisted() *persisted {
	kept, err := lru.New[string, string](keptDocuments)
	if err != nil {
		panic(err) // the size is wrong
	}
	return &persisted{kept}
}

// fill finds the document that a request only names, and checks the name of
// one that it brings.
func (p *persisted) fill(req *httpRequest) *httpProblem {
	hash, asked, refusal := hashOf(req)
	if !asked || refusal != nil {
		return refusal
	}
	if req.Query != "" {
		if hash != hashText(req.Query) {
			return badRequest("persistedQuery: sha256Hash is not the hash of the query.")
		}
		return nil
	}
	query, known := p.kept.Get(hash)
	if !known {
		// Clients recognise this very message, and send the document.
		return &httpProblem{http.StatusOK, &problem.Problem{Code: codeNotPersisted, Message: "PersistedQueryNotFound"}}
	}
	req.Query = query
	return nil
}

// remember keeps a sound document that came with its hash.
func (p *persisted) remember(req *httpRequest) {
	if hash, asked, _ := hashOf(req); asked && len(req.Query) <= maxKept {
		p.kept.Add(hash, req.Query)
	}
}

func hashOf(req *httpRequest) (hash string, asked bool, refusal *httpProblem) {
	extension, asked := req.Extensions["persistedQuery"]
	if !asked || extension == nil {
		return "", false, nil
	}
	object, _ := extension.(map[string]any)
	version, _ := object["version"].(json.Number)
	hash, _ = object["sha256Hash"].(string)
	if version != "1" || len(hash) != hex.EncodedLen(sha256.Size) {
		return "", true, badRequest("persistedQuery: must have version 1 and a sha256Hash.")
	}
	return hash, true, nil
}

func hashText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
