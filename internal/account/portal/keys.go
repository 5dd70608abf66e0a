package portal

import (
	"errors"
	"fmt"
	"math"
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
	Newest         int64  // see auth.CreateKeyOnce
	Agents         string // address of the MCP server
}

func (p *Portal) showKeys(v *visit) error {
	all, keysErr := p.accounts.Keys(v.Context(), v.account)
	days, daysErr := p.lastDays(v)
	customer, customerErr := p.Billing.Customer(v.Context(), v.account)
	if err := errors.Join(keysErr, daysErr, customerErr); err != nil {
		return err
	}
	plan, keys := auth.Plan(v.account.Plan), auth.Unrevoked(all)
	return p.show(v, "keys", keysPage{
		Limit: plan.Terms().Keys, MaxName: auth.MaxKeyName, Name: v.PostFormValue("name"), CanUpgrade: plan == auth.Developer,
		ProKeys: auth.Pro.Terms().Keys, Newest: auth.NewestKey(keys), Keys: keys, Suspended: auth.Suspended(plan, keys),
		Today: allowanceOn(days[len(days)-1], v.account), PaymentDue: paymentDue(v.account, customer, p.now()),
		HasRevokedKeys: len(all) > len(keys), Agents: p.PublicURL + "/mcp",
	})
}

// newKeyPage has the key in an example request and in the settings of an agent.
type newKeyPage struct{ Name, Key, Curl, Agent string }

func (p *Portal) createKey(v *visit) error {
	newest, err := strconv.ParseInt(v.PostFormValue("newest"), 10, 64)
	if err != nil {
		newest = math.MaxInt64
	}
	text, key, err := p.accounts.CreateKeyOnce(v.Context(), v.account, v.PostFormValue("name"), newest)
	if err != nil {
		return v.reject(err, p.showKeys)
	}
	curl := fmt.Sprintf(`curl -s -H "Authorization: Bearer %s" %s%s`, text, p.PublicURL, p.Example(v.Context()))
	agent := fmt.Sprintf(`{"mcpServers": {"palmares": {"type": "http", "url": "%s/mcp", "headers": {"Authorization": "Bearer %s"}}}}`, p.PublicURL, text)
	return p.show(v, "newkey", newKeyPage{Name: key.Name, Key: text, Curl: curl, Agent: agent})
}

// withKey passes the key in the path, if it belongs to the visitor.
func withKey(handle func(*Portal, *visit, *ent.APIKey) error) handler {
	return func(p *Portal, v *visit) error {
		keys, err := p.accounts.Keys(v.Context(), v.account)
		if err != nil {
			return err
		}
		for _, key := range auth.Unrevoked(keys) {
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
