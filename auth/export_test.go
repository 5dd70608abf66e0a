package auth

import "time"

// SetClock replaces the clock of everything that a test signs up with.
func SetClock(now func() time.Time, accounts *Accounts, messages *Confirmations, keyring *Keyring) {
	accounts.now, messages.now, keyring.now = now, now, now
}
