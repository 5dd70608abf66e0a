package auth

import "time"

// SetClock sets the clock of accounts and their keyring.
func SetClock(now func() time.Time, accounts *Accounts, keyring *Keyring) {
	accounts.now, keyring.now = now, now
}
