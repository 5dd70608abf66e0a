package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/big"

	"palmares/ent"
	"palmares/ent/confirmation"
	"palmares/internal/core/store"
)

// Try takes a code in the browser that asked for the message. Codes are tried
// one after the other, so that many at once are no more than are allowed.
func (c *Confirmations) Try(ctx context.Context, purpose confirmation.Purpose, browser, code string) (*ent.Confirmation, error) {
	found, err := c.LookByBrowser(ctx, purpose, browser)
	if err != nil {
		return found, err
	}
	if found.Tries >= maxTries { // nobody need wait to be told that
		return found, ErrLocked
	}
	var wrong error // what is counted must be kept, so it does not end the transaction
	err = c.store.OneByOne(ctx, func(tx *ent.Tx) error {
		wrong = nil
		left, err := c.triesLeft(ctx, tx.Confirmation, found)
		switch {
		case err != nil:
			return err
		case left <= 0:
			return ErrLocked
		case hmac.Equal([]byte(keyed(browser, code)), []byte(found.CodeHash)):
			return nil
		case left == 1:
			wrong = ErrLocked
		default:
			wrong = ErrWrongCode
		}
		return tx.Confirmation.UpdateOneID(found.ID).AddTries(1).Exec(ctx)
	})
	if err != nil {
		return found, err
	}
	return found, wrong
}

// Locked tells whether a message's code is not taken any more.
func (c *Confirmations) Locked(ctx context.Context, found *ent.Confirmation) (bool, error) {
	left, err := c.triesLeft(ctx, c.store.Current().Confirmation, found)
	return left <= 0, store.Explain(err)
}

// triesLeft is how many more wrong codes a message can take, and its mailbox.
func (c *Confirmations) triesLeft(ctx context.Context, messages *ent.ConfirmationClient, found *ent.Confirmation) (int, error) {
	tried, err := messages.Query().Where(
		confirmation.Mailbox(found.Mailbox), sentWithin(confirmationKept, c.now().UTC()), confirmation.TriesGT(0),
	).All(ctx)
	if err != nil {
		return 0, err
	}
	ofMessage, ofMailbox := maxTries, maxWrong
	for _, message := range tried {
		ofMailbox -= message.Tries
		if message.ID == found.ID {
			ofMessage -= message.Tries
		}
	}
	return min(ofMessage, ofMailbox), nil
}

// newCode is six digits, each as likely as any other.
func newCode() string {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		panic(err) // the system's source of chance never fails
	}
	return fmt.Sprintf("%06d", n)
}

// keyed hides a code from who reads the database but not the browser.
func keyed(browser, code string) string {
	mac := hmac.New(sha256.New, []byte(browser))
	mac.Write([]byte(code))
	return hex.EncodeToString(mac.Sum(nil))
}
