package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net/mail"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	entsql "entgo.io/ent/dialect/sql"
	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"palmares/ent"
	"palmares/ent/account"
	"palmares/ent/confirmation"
	"palmares/ent/predicate"
	"palmares/ent/session"
	"palmares/internal/core/lang"
	"palmares/internal/core/problem"
)

const (
	// ConfirmationLifetime is how long the link and the code of an email work.
	ConfirmationLifetime = 15 * time.Minute
	// confirmationRetention is how long emails count towards the limits.
	confirmationRetention = 24 * time.Hour
	// maxAttempts is how many wrong codes an email accepts. Guessing six digits
	// succeeds once in 200,000 emails.
	maxAttempts = 5
	// maxMailboxAttempts is the same for all retained emails to a mailbox, so
	// that guessing for days does not succeed either.
	maxMailboxAttempts = 20

	// Limits on emails within emailWindow, so that nobody is flooded with them.
	emailWindow     = time.Hour
	maxPerMailbox   = 5
	maxPerNetwork   = 20
	maxPerWiderIPv6 = 60
	maxPerWiderIPv4 = 200 // many people share one

	maxEmailLength = 254 // RFC 5321
)

// Errors of signing in and of changing an email address.
var (
	ErrInvalidEmail = problem.New(problem.BadInput, "Enter a valid email address.")
	ErrMailboxLimit = problem.New(problem.TooMany, "We sent %d emails to this address within the last hour. Try again later.", maxPerMailbox)
	ErrNetworkLimit = problem.New(problem.TooMany, "Too many emails were requested from your network within the last hour. Try again later.")
	ErrUnknownLink  = problem.New(problem.NotFound, "This link is invalid. Check that you copied all of it.")
	ErrExpired      = problem.New(problem.Gone, "Links and codes expire after 15 minutes.")
	ErrUsed         = problem.New(problem.Gone, "Each link and code works only once.")
	ErrWrongCode    = problem.New(problem.BadInput, "This code is incorrect.")
	ErrLocked       = problem.New(problem.TooMany, "Too many incorrect codes. The link in the email still works.")
	ErrOtherAccount = problem.New(problem.Forbidden, "This link belongs to a different account. Sign in to that account first.")
	ErrTaken        = problem.New(problem.BadInput, "An account with this email address already exists.")
	ErrSameAddress  = problem.New(problem.BadInput, "This is already the email address of your account.")
)

// A confirmation is an email with which people prove that they control an address.
// Whether one is sent never depends on whether the address has an account.

// Sender is the network that an email was requested from, and the larger network
// around it, because many IPv6 users have several networks.
type Sender struct{ Network, Wider string }

// Challenge is an email to be sent. Only hashes of its secrets are stored.
type Challenge struct {
	Email   string
	Link    string // token of the link
	Code    string // alternative to the link
	Browser string // token of the browser in which the code works
}

// StartSignIn creates the challenge for signing in or up.
func (a *Accounts) StartSignIn(ctx context.Context, email string, from Sender) (Challenge, error) {
	return a.start(ctx, confirmation.PurposeSignIn, email, from, nil)
}

// StartEmailChange creates the challenge for changing an account's address.
func (a *Accounts) StartEmailChange(ctx context.Context, acc *ent.Account, email string, from Sender) (Challenge, error) {
	return a.start(ctx, confirmation.PurposeChangeEmail, email, from, acc)
}

func (a *Accounts) start(ctx context.Context, purpose confirmation.Purpose, email string, from Sender, acc *ent.Account) (Challenge, error) {
	email, err := NormalizeEmail(email)
	if err != nil {
		return Challenge{}, err
	}
	var owner *int
	if acc != nil {
		if owner = &acc.ID; email == acc.Email {
			return Challenge{}, ErrSameAddress
		}
	}
	challenge := Challenge{Email: email, Link: rand.Text(), Browser: rand.Text(), Code: newCode()}
	now := a.now().UTC()
	// Sequential, so that concurrent requests cannot exceed the limits.
	return challenge, a.store.Sequential(ctx, func(tx *ent.Tx) error {
		if err := checkLimits(ctx, tx, email, from, now); err != nil {
			return err
		}
		return tx.Confirmation.Create().SetPurpose(purpose).SetEmail(email).SetMailbox(mailbox(email)).
			SetSender(from.Network).SetWiderSender(from.Wider).SetNillableAccountID(owner).
			SetLinkHash(hashToken(challenge.Link)).SetBrowserHash(hashToken(challenge.Browser)).
			SetCodeHash(keyedHash([]byte(challenge.Browser), challenge.Code)).
			SetCreatedAt(now).SetExpiresAt(now.Add(ConfirmationLifetime)).Exec(ctx)
	})
}

func checkLimits(ctx context.Context, tx *ent.Tx, email string, from Sender, now time.Time) error {
	maxPerWider := maxPerWiderIPv4
	if strings.Contains(from.Wider, ":") {
		maxPerWider = maxPerWiderIPv6
	}
	for _, limit := range []struct {
		where predicate.Confirmation
		max   int
		err   error
	}{
		{confirmation.Mailbox(mailbox(email)), maxPerMailbox, ErrMailboxLimit},
		{confirmation.Sender(from.Network), maxPerNetwork, ErrNetworkLimit},
		{confirmation.WiderSender(from.Wider), maxPerWider, ErrNetworkLimit},
	} {
		sent, err := tx.Confirmation.Query().Where(sentWithin(emailWindow, now), limit.where).Count(ctx)
		if err != nil {
			return err
		}
		if sent >= limit.max {
			return limit.err
		}
	}
	return nil
}

// sentWithin matches emails whose dates differ from now by less than window: those
// that a wrong clock has dated further in the future must not count until then.
func sentWithin(window time.Duration, now time.Time) predicate.Confirmation {
	return confirmation.And(confirmation.CreatedAtGT(now.Add(-window)), confirmation.CreatedAtLT(now.Add(window)))
}

// Withdraw deletes a challenge that was not sent and must not count.
func (a *Accounts) Withdraw(ctx context.Context, challenge Challenge) error {
	return deleteAll(ctx, a.store.Write.Confirmation.Delete().Where(confirmation.LinkHash(hashToken(challenge.Link))))
}

// ConfirmationByLink returns the confirmation of a link. It does not use the link
// up, because mail scanners open links too.
func (a *Accounts) ConfirmationByLink(ctx context.Context, link string) (*ent.Confirmation, error) {
	return a.findConfirmation(ctx, confirmation.LinkHash(hashToken(link)))
}

// ConfirmationByBrowser returns the confirmation that a browser has requested.
func (a *Accounts) ConfirmationByBrowser(ctx context.Context, purpose confirmation.Purpose, browser string) (*ent.Confirmation, error) {
	return a.findConfirmation(ctx, confirmation.BrowserHash(hashToken(browser)), confirmation.PurposeEQ(purpose))
}

// findConfirmation also returns a confirmation that was used or has expired, with
// an error.
func (a *Accounts) findConfirmation(ctx context.Context, where ...predicate.Confirmation) (*ent.Confirmation, error) {
	found, err := a.store.Read.Confirmation.Query().Where(where...).Only(ctx)
	switch {
	case ent.IsNotFound(err):
		return nil, ErrUnknownLink
	case err != nil:
		return nil, err
	case found.UsedAt != nil:
		return found, ErrUsed
	case !a.now().Before(found.ExpiresAt), found.CreatedAt.After(a.now().Add(ConfirmationLifetime)): // sent while a clock was ahead
		return found, ErrExpired
	}
	return found, nil
}

// Confirmations returns the retained confirmations of an account, newest first.
func (a *Accounts) Confirmations(ctx context.Context, acc *ent.Account) ([]*ent.Confirmation, error) {
	return a.store.Read.Confirmation.Query().Where(concerning(acc)).Order(ent.Desc(confirmation.FieldCreatedAt)).All(ctx)
}

// concerning matches emails to an account's address or requested by the account.
func concerning(acc *ent.Account) predicate.Confirmation {
	return confirmation.Or(confirmation.AccountID(acc.ID), confirmation.Email(acc.Email))
}

// invalidateConfirmations retains the rows, because they count towards the
// limits. Otherwise deleting an account would allow more emails and guesses.
func invalidateConfirmations(ctx context.Context, tx *ent.Tx, acc *ent.Account, now time.Time) error {
	return tx.Confirmation.Update().Where(concerning(acc), confirmation.UsedAtIsNil()).SetUsedAt(now).Exec(ctx)
}

// CheckCode checks a code in the browser that requested it. Codes are checked
// sequentially, so that concurrent guesses cannot exceed the limits.
func (a *Accounts) CheckCode(ctx context.Context, purpose confirmation.Purpose, browser, code string) (*ent.Confirmation, error) {
	found, err := a.ConfirmationByBrowser(ctx, purpose, browser)
	if err != nil {
		return found, err
	}
	if found.Tries >= maxAttempts { // no need to wait for the lock
		return found, ErrLocked
	}
	var incorrect error // returned after the commit: an error would roll the attempt back
	err = a.store.Sequential(ctx, func(tx *ent.Tx) error {
		incorrect = nil
		left, err := a.attemptsLeft(ctx, tx.Confirmation, found)
		switch {
		case err != nil:
			return err
		case left <= 0:
			return ErrLocked
		case hmac.Equal([]byte(keyedHash([]byte(browser), code)), []byte(found.CodeHash)):
			return nil
		case left == 1:
			incorrect = ErrLocked
		default:
			incorrect = ErrWrongCode
		}
		return tx.Confirmation.UpdateOneID(found.ID).AddTries(1).Exec(ctx)
	})
	if err != nil {
		return found, err
	}
	return found, incorrect
}

// Locked reports whether no more codes are accepted for a confirmation.
func (a *Accounts) Locked(ctx context.Context, found *ent.Confirmation) (bool, error) {
	left, err := a.attemptsLeft(ctx, a.store.Read.Confirmation, found)
	return left <= 0, err
}

// attemptsLeft applies the limits of the confirmation and of its mailbox.
func (a *Accounts) attemptsLeft(ctx context.Context, client *ent.ConfirmationClient, found *ent.Confirmation) (int, error) {
	attempted, err := client.Query().Where(
		confirmation.Mailbox(found.Mailbox), sentWithin(confirmationRetention, a.now().UTC()), confirmation.TriesGT(0),
	).All(ctx)
	if err != nil {
		return 0, err
	}
	left, leftOfMailbox := maxAttempts, maxMailboxAttempts
	for _, other := range attempted {
		leftOfMailbox -= other.Tries
		if other.ID == found.ID {
			left -= other.Tries
		}
	}
	return min(left, leftOfMailbox), nil
}

// SignIn uses a confirmation, creates the account if the address is new, and
// returns the token of a new session. The user agent is stored so that users
// recognize their sessions. A new account gets emails in the language of the page;
// others keep theirs.
func (a *Accounts) SignIn(ctx context.Context, found *ent.Confirmation, userAgent string, l lang.Language) (token string, err error) {
	if found.Purpose != confirmation.PurposeSignIn {
		return "", ErrUnknownLink
	}
	now := a.now().UTC()
	token = rand.Text() // only its hash is stored
	return token, a.store.Update(ctx, func(tx *ent.Tx) error {
		// Locks the account first, like Accounts.Delete, to prevent deadlocks.
		create, err := newAccount(ctx, tx, found.Email, Developer, now)
		if err != nil {
			return err
		}
		if err := use(ctx, tx, found, now); err != nil {
			return err
		}
		// Of concurrent calls, one creates the account.
		err = create.SetLanguage(account.Language(l)).OnConflict(entsql.DoNothing()).Exec(ctx)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		acc, err := tx.Account.Query().Where(account.Email(found.Email)).Only(ctx)
		if err != nil {
			return err
		}
		return tx.Session.Create().SetID(hashToken(token)).SetAccountID(acc.ID).SetCreatedAt(now).SetExpiresAt(now.Add(SessionLifetime)).
			SetUserAgent(storedUserAgent(userAgent)).Exec(ctx)
	})
}

// ChangeEmail uses a confirmation to change the address of the signed-in
// account. It ends all other sessions: they may be the reason for the change. The
// functions that it is given run at the end of the transaction.
func (a *Accounts) ChangeEmail(
	ctx context.Context, found *ent.Confirmation, acc *ent.Account, currentSession string, also ...func(*ent.Tx) error,
) error {
	if found.Purpose != confirmation.PurposeChangeEmail || found.AccountID == nil {
		return ErrUnknownLink
	}
	if *found.AccountID != acc.ID {
		return ErrOtherAccount
	}
	if found.Email == acc.Email {
		return ErrSameAddress
	}
	err := a.store.WithRowLock(ctx, account.Table, acc.ID, func(tx *ent.Tx) error {
		if err := use(ctx, tx, found, a.now().UTC()); err != nil {
			return err
		}
		if err := tx.Account.UpdateOneID(acc.ID).SetEmail(found.Email).Exec(ctx); err != nil {
			return err
		}
		if err := deleteAll(ctx, tx.Session.Delete().Where(session.AccountID(acc.ID), session.IDNEQ(hashToken(currentSession)))); err != nil {
			return err
		}
		return runAll(tx, also)
	})
	if ent.IsConstraintError(err) {
		return ErrTaken
	}
	return err
}

// use marks a confirmation as used. Of concurrent calls, one succeeds.
func use(ctx context.Context, tx *ent.Tx, found *ent.Confirmation, now time.Time) error {
	updated, err := tx.Confirmation.Update().Where(confirmation.ID(found.ID), confirmation.UsedAtIsNil()).SetUsedAt(now).Save(ctx)
	if err == nil && updated == 0 {
		return ErrUsed
	}
	return err
}

func newCode() string {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		panic(err) // rand.Reader never fails
	}
	return fmt.Sprintf("%06d", n)
}

// keyedHash hashes text that could be guessed from a plain hash. The key of a code
// is not stored.
func keyedHash(key []byte, text string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

// NormalizeEmail returns the form of an address that identifies an account: in
// lower case, with an ASCII domain. The result must not change when it is
// normalized again: a domain that ends in a full-width dot would.
func NormalizeEmail(text string) (string, error) {
	email, valid := normalizeOnce(text)
	if again, stable := normalizeOnce(email); !valid || !stable || again != email {
		return "", ErrInvalidEmail
	}
	return email, nil
}

func normalizeOnce(text string) (email string, valid bool) {
	if !utf8.ValidString(text) { // ToLower would turn it into another address
		return "", false
	}
	text = norm.NFC.String(strings.ToLower(strings.TrimSpace(text)))
	address, err := mail.ParseAddress(text)
	if err != nil || address.Name != "" || address.Address != text || strings.ContainsFunc(text, unicode.IsControl) {
		return "", false
	}
	at := strings.LastIndexByte(text, '@')
	domain, err := idna.Lookup.ToASCII(text[at+1:])
	email = text[:at+1] + domain
	return email, err == nil && strings.Contains(domain, ".") && max(len(text), len(email)) <= maxEmailLength
}

// mailbox returns the address without the tag that may follow a plus sign.
func mailbox(email string) string {
	at := strings.LastIndexByte(email, '@')
	local, _, _ := strings.Cut(email[:at], "+")
	return local + email[at:]
}
