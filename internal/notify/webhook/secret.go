package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"palmares/ent"
)

const secretPrefix = "whsec_"

// bothSign is how long the secret before a rotation goes on signing.
const bothSign = 24 * time.Hour

// newSecret is what a receiver checks signatures with.
func newSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // the system's source of chance never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// sign signs with the secret, and with the one before while a rotation lasts.
func sign(endpoint *ent.Endpoint, id string, at time.Time, body []byte) (string, error) {
	signature, err := signWith(endpoint.Secret, id, at, body)
	if err != nil || endpoint.FormerUntil == nil || !at.Before(*endpoint.FormerUntil) {
		return signature, err
	}
	former, err := signWith(endpoint.FormerSecret, id, at, body)
	return signature + " " + former, err
}

func signWith(secret, id string, at time.Time, body []byte) (string, error) {
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return "", err
	}
	return hook.Sign(id, at, body)
}
