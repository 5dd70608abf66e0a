package portal

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/problem"
)

type keysPage struct {
	Keys           []*ent.APIKey
	Suspended      map[string]bool // by id
	Limit          int
	MaxName        int
	Name           string // as typed in a rejected form
	CanUpgrade     bool
	ProKeys        int
	Today          allowance
	PaymentDue     *time.Time
	HasRevokedKeys bool
	Newest         int64 // see createKeyOnce
}

func (p *Portal) showKeys(v *visit) error {
	keys, keysErr := p.accounts.UnrevokedKeys(v.Context(), v.account)
	days, daysErr := p.lastDays(v)
	customer, customerErr := p.Billing.Customer(v.Context(), v.account)
	if err := errors.Join(keysErr, daysErr, customerErr); err != nil {
		return err
	}
	plan := auth.Plan(v.account.Plan)
	data := keysPage{
		Limit: plan.Terms().Keys, MaxName: auth.MaxKeyName, Name: v.PostFormValue("name"), CanUpgrade: plan == auth.Developer,
		ProKeys: auth.Pro.Terms().Keys, Newest: newestKey(keys), Keys: keys, Suspended: auth.Suspended(plan, keys),
		Today: allowanceOn(days[len(days)-1], v.account), PaymentDue: paymentDue(v.account, customer, p.now()),
	}
	if len(keys) == 0 {
		var err error
		if data.HasRevokedKeys, err = p.accounts.HasRevokedKeys(v.Context(), v.account); err != nil {
			return err
		}
	}
	return p.show(v, "keys", data)
}

type newKeyPage struct{ Name, Key, Curl string }

func (p *Portal) createKey(v *visit) error {
	text, key, err := p.createKeyOnce(v)
	if err != nil {
		return v.reject(err, p.showKeys)
	}
	curl := fmt.Sprintf(`curl -s -H "Authorization: Bearer %s" %s%s`, text, p.PublicURL, p.Example(v.Context()))
	return p.show(v, "newkey", newKeyPage{Name: key.Name, Key: text, Curl: curl})
}

// createKeyOnce ignores a form that was already submitted: the browser shows
// only the last response, and a key is shown once. The form contains the date
// of the newest key, so that no server has to remember forms.
func (p *Portal) createKeyOnce(v *visit) (string, *ent.APIKey, error) {
	lock := &p.keyLocks[v.account.ID%len(p.keyLocks)]
	lock.Lock() // a form may be submitted twice at the same time
	defer lock.Unlock()
	if newest, err := strconv.ParseInt(v.PostFormValue("newest"), 10, 64); err == nil {
		keys, err := p.accounts.UnrevokedKeys(v.Context(), v.account)
		if err != nil {
			return "", nil, err
		}
		if newestKey(keys) > newest {
			return "", nil, problem.New(problem.BadInput, "A key was created after you opened this form, or you submitted the form twice. No other key was created. Keys are shown only once: if you did not copy the newest key, revoke it and create another.")
		}
	}
	return p.accounts.CreateKey(v.Context(), v.account, v.PostFormValue("name"))
}

// newestKey returns when the newest key was created, in PostgreSQL's precision.
func newestKey(keys []*ent.APIKey) int64 {
	if len(keys) == 0 {
		return 0
	}
	return keys[len(keys)-1].CreatedAt.UnixMicro()
}

// withKey passes the key in the path, if it belongs to the visitor.
func withKey(handle func(*Portal, *visit, *ent.APIKey) error) handler {
	return func(p *Portal, v *visit) error {
		keys, err := p.accounts.UnrevokedKeys(v.Context(), v.account)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if key.ID == v.PathValue("id") {
				return handle(p, v, key)
			}
		}
		return problem.New(problem.NotFound, "This key does not exist or was already revoked.")
	}
}

func (p *Portal) confirmRevoke(v *visit, key *ent.APIKey) error { return p.show(v, "revoke", key) }

func (p *Portal) revokeKey(v *visit, key *ent.APIKey) error {
	if err := p.accounts.RevokeOwned(v.Context(), v.account, key.ID); err != nil {
		return err
	}
	p.Keyring.ForgetAccount(v.account.ID) // another key may not be suspended any more
	return p.redirect(v, "/account?done=revoked")
}
