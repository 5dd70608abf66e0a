package portal

import (
	"fmt"
	"strconv"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/problem"
)

// keysPage is the data of the page of keys.
type keysPage struct {
	Keys        []keyRow
	Used, Most  int
	Name        string // as it was typed, where it was refused
	MayUpgrade  bool
	QuotaSpent  bool
	Today       int
	Quota       int
	ResetsAt    time.Time
	PaymentDue  *time.Time // until when Pro goes on without one
	MadeBefore  bool       // keys were made, and all are revoked
	LongestName int
	Newest      int64 // see errMadeSince
}

// keyRow is a key that was not revoked.
type keyRow struct {
	*ent.APIKey
	Suspended bool
}

func (p *Portal) showKeys(v *visit) error { return p.showKeysWith(v, "", nil) }

func (p *Portal) showKeysWith(v *visit, name string, wrong error) error {
	keys, err := p.accounts.UnrevokedKeys(v.Context(), v.account)
	if err != nil {
		return err
	}
	plan := auth.Plan(v.account.Plan)
	data := keysPage{Most: plan.Terms().Keys, Name: name, MayUpgrade: plan == auth.Developer, Used: len(keys), LongestName: auth.LongestKeyName, Newest: newest(keys)}
	suspended := auth.Suspended(plan, keys)
	for _, key := range keys {
		data.Keys = append(data.Keys, keyRow{key, suspended[key.ID]})
	}
	if len(keys) == 0 {
		if data.MadeBefore, err = p.accounts.HadKeys(v.Context(), v.account); err != nil {
			return err
		}
	}
	days, err := p.lastDays(v)
	if err != nil {
		return err
	}
	left := leftOn(days[len(days)-1], v.account)
	data.Today, data.Quota, data.ResetsAt, data.QuotaSpent = left.Requests, left.Quota, left.ResetsAt, left.Spent()
	row, err := p.Billing.Customer(v.Context(), v.account)
	if err != nil {
		return err
	}
	data.PaymentDue = paymentDue(v.account, row, p.now())
	return p.show(v, "keys", data, wrong)
}

// newKey is the data of the page that shows a key, once.
type newKey struct {
	Name, Key, Curl string
}

func (p *Portal) createKey(v *visit) error {
	name := v.PostFormValue("name")
	making := &p.making[v.account.ID%len(p.making)]
	making.Lock() // the same form may come twice at the same moment
	text, key, err := p.createKeyOnce(v, name)
	making.Unlock()
	if err != nil {
		return p.showKeysWith(v, name, err)
	}
	curl := fmt.Sprintf(`curl -s -H "Authorization: Bearer %s" %s%s`, text, p.PublicURL, p.Example(v.Context()))
	return p.show(v, "newkey", newKey{Name: key.Name, Key: text, Curl: curl}, nil)
}

// createKeyOnce makes nothing of a form that was sent before: the browser shows
// the last answer alone, and a key is shown once. A form knows the newest key
// of its time, so that no server has to remember forms.
func (p *Portal) createKeyOnce(v *visit, name string) (string, *ent.APIKey, error) {
	if known, err := strconv.ParseInt(v.PostFormValue("newest"), 10, 64); err == nil {
		keys, err := p.accounts.UnrevokedKeys(v.Context(), v.account)
		if err != nil {
			return "", nil, err
		}
		if newest(keys) > known {
			return "", nil, errMadeSince
		}
	}
	return p.accounts.CreateKey(v.Context(), v.account, name)
}

var errMadeSince = problem.New(problem.BadInput, "This form was sent twice, or a key was made elsewhere since you opened it: the newest key is in the list, and no other was made. A key is shown once, so if you did not see it, revoke it and make another.")

// newest is when the newest of some keys was made.
func newest(keys []*ent.APIKey) int64 {
	if len(keys) == 0 {
		return 0
	}
	return keys[len(keys)-1].CreatedAt.UnixMicro() // which PostgreSQL rounds to
}

// askRevoke wants to be sure: a key that ends may be in use.
func (p *Portal) askRevoke(v *visit) error {
	key, err := p.keyOf(v)
	if err != nil {
		return err
	}
	return p.show(v, "revoke", key, nil)
}

func (p *Portal) revokeKey(v *visit) error {
	key, err := p.keyOf(v)
	if err != nil {
		return err
	}
	if err := p.accounts.RevokeOf(v.Context(), v.account, key.ID); err != nil {
		return err
	}
	p.Keyring.Forget(key.ID)
	p.forgetKeys(v)
	return p.redirect(v, "/account?done=revoked")
}

// keyOf is the key that the address names, if it is the visitor's own.
func (p *Portal) keyOf(v *visit) (*ent.APIKey, error) {
	keys, err := p.accounts.UnrevokedKeys(v.Context(), v.account)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if key.ID == v.PathValue("id") {
			return key, nil
		}
	}
	return nil, problem.New(problem.NotFound, "You have no such key, or it was revoked before.")
}

// forgetKeys makes what was done to keys true here at once: one that ends may
// let another go on.
func (p *Portal) forgetKeys(v *visit) {
	keys, err := p.accounts.UnrevokedKeys(v.Context(), v.account)
	if err != nil {
		return // they are forgotten by themselves within a second
	}
	for _, key := range keys {
		p.Keyring.Forget(key.ID)
	}
}
