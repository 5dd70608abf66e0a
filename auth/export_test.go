package auth

import "time"

// SetClock sets the clock of everything that is needed to sign up.
func SetClock(now func() time.Time, accounts *Accounts, messages *Confirmations, keyring *Keyring) {
	accounts.now, messages.now, keyring.now = now, now, now
}
