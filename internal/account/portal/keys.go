package portal

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"palmares/auth"
	"palmares/ent"
	"palmares/internal/core/problem"
	"palmares/internal/transport/saved"
)

type keysPage struct {
	Keys           []*ent.APIKey
	Suspended      map[string]bool // by id
	MaxName        int
	Today          allowance
	PaymentDue     *time.Time
	HasRevokedKeys bool
	Recent         map[string]int // requests of the last days, by key id
	Usage          []endpointUsage
	UsageDays      int
	Newest         int64 // see auth.CreateKeyOnce
	Applications   []auth.Grant
}

// usageDays is the period of the usage by key and endpoint, including today.
const usageDays = 7

// endpointUsage is how many requests a key sent to an endpoint.
type endpointUsage struct {
	auth.EndpointUsage
	Name     string // the key or application
	Revoked  bool
	position int // of the key
}

// ByBrowser reports whether a signed-in browser sent the requests.
func (u endpointUsage) ByBrowser() bool { return u.Key == "" }

// ByToken reports whether a token was used.
func (u endpointUsage) ByToken() bool { return u.Key == auth.TokenKey }

// ByApplication reports whether a connected application sent the requests.
func (u endpointUsage) ByApplication() bool { return strings.HasPrefix(u.Key, auth.ApplicationPrefix) }

// OfSavedQuery reports whether the endpoint serves saved queries.
func (u endpointUsage) OfSavedQuery() bool { return strings.HasPrefix(u.Endpoint, saved.Path) }

// usageByKey groups the usage by key, in the order of the keys. Signed-in
// browsers, tokens and keys that are no longer stored come last.
func usageByKey(rows []auth.EndpointUsage, keys []*ent.APIKey, applications []auth.Grant) []endpointUsage {
	var all []endpointUsage
	for _, row := range rows {
		u := endpointUsage{EndpointUsage: row, position: len(keys)}
		for i, key := range keys {
			if key.ID == row.Key {
				u.Name, u.Revoked, u.position = key.Name, key.RevokedAt != nil, i
			}
		}
		for _, a := range applications {
			if a.UsageKey() == row.Key {
				u.Name = a.ClientName
			}
		}
		all = append(all, u)
	}
	slices.SortStableFunc(all, func(a, b endpointUsage) int {
		return cmp.Or(cmp.Compare(a.position, b.position), cmp.Compare(a.Key, b.Key))
	})
	return all
}

func (p *Portal) showKeys(v *visit) error {
	all, keysErr := p.accounts.Keys(v.Context(), v.account)
	days, daysErr := p.lastDays(v)
	customer, customerErr := p.Billing.Customer(v.Context(), v.account)
	usage, usageErr := p.accounts.UsageByEndpoint(v.Context(), v.account, usageDays)
	applications, applicationsErr := p.accounts.Grants(v.Context(), v.account)
	if err := errors.Join(keysErr, daysErr, customerErr, usageErr, applicationsErr); err != nil {
		return err
	}
	recent := map[string]int{}
	for _, u := range usage {
		recent[u.Key] += u.Requests
	}
	plan, keys := auth.Plan(v.account.Plan), auth.Unrevoked(all)
	return p.show(v, "keys", keysPage{
		MaxName: auth.MaxKeyName,
		Newest:  auth.NewestKey(keys), Keys: keys, Suspended: auth.Suspended(plan, keys),
		Today: allowanceOn(days[len(days)-1], v.account), PaymentDue: paymentDue(v.account, customer, p.now()),
		HasRevokedKeys: len(all) > len(keys), Recent: recent, Usage: usageByKey(usage, all, applications), UsageDays: usageDays,
		Applications: applications,
	})
}

type newKeyPage struct{ Name, Key, Example string }

func (p *Portal) createKey(v *visit) error {
	newest, err := strconv.ParseInt(v.PostFormValue("newest"), 10, 64)
	if err != nil {
		newest = math.MaxInt64
	}
	text, key, err := p.accounts.CreateKeyOnce(v.Context(), v.account, v.PostFormValue("name"), newest)
	if err != nil {
		return p.showKeys(v.rejected(err))
	}
	return p.show(v, "newkey", newKeyPage{key.Name, text, p.Example(v.Context())})
}

func (p *Portal) key(v *visit) (*ent.APIKey, error) {
	keys, err := p.accounts.Keys(v.Context(), v.account)
	return find(auth.Unrevoked(keys), err, func(k *ent.APIKey) bool { return k.ID == v.PathValue("id") }, problem.New(problem.NotFound, "This key does not exist or was already revoked."))
}

func (p *Portal) revokeKey(v *visit, key *ent.APIKey) error {
	return p.changed(v, p.accounts.RevokeOwned(v.Context(), v.account, key.ID), "/account?done=revoked")
}
