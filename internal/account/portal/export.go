package portal

import (
	"encoding/json"
	"math"
	"time"
)

// exported is everything that we know of an account, for its owner.
type exported struct {
	Account  exportedAccount    `json:"account"`
	Keys     []exportedKey      `json:"keys"`
	Usage    []exportedUsage    `json:"usage"`
	Sessions []exportedSession  `json:"sessions"`
	Messages []exportedMessage  `json:"messages"`
	Webhooks []exportedEndpoint `json:"webhooks"`
	Billing  *exportedBilling   `json:"billing"`
}

type exportedAccount struct {
	Email     string    `json:"email"`
	Plan      string    `json:"plan"`
	CreatedAt time.Time `json:"created_at"`
}

type exportedKey struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
}

type exportedUsage struct {
	Day      string `json:"day"`
	Requests int    `json:"requests"`
}

type exportedSession struct {
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

// exportedMessage is one of the last day's; older ones are not kept. Where it
// was asked for from is told if it was used: else it may be somebody else's.
type exportedMessage struct {
	Purpose   string     `json:"purpose"`
	Email     string     `json:"email"`
	CreatedAt time.Time  `json:"created_at"`
	UsedAt    *time.Time `json:"used_at"`
	Network   string     `json:"network,omitempty"`
}

type exportedBilling struct {
	Customer     string     `json:"customer"`
	Email        string     `json:"email"`
	Subscription string     `json:"subscription"`
	Status       string     `json:"status"`
	PeriodEnd    *time.Time `json:"period_end"`
	Cancels      bool       `json:"cancels_at_period_end"`
}

func (p *Portal) export(v *visit) error {
	data, err := p.gather(v)
	if err != nil {
		return err
	}
	body, err := json.MarshalIndent(data, "", "  ")
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.w.Header().Set("Content-Disposition", `attachment; filename="account.json"`)
	_, _ = v.w.Write(append(body, '\n'))
	return nil
}

func (p *Portal) gather(v *visit) (*exported, error) {
	acc := v.account
	data := &exported{
		Account: exportedAccount{acc.Email, string(acc.Plan), acc.CreatedAt.UTC()},
		Keys:    []exportedKey{}, Usage: []exportedUsage{}, Sessions: []exportedSession{}, Messages: []exportedMessage{},
	}
	keys, err := p.accounts.Keys(v.Context(), acc)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		data.Keys = append(data.Keys, exportedKey{key.ID, key.Name, key.CreatedAt.UTC(), key.LastUsedAt, key.RevokedAt})
	}
	days, err := p.accounts.Usage(v.Context(), acc, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	for _, day := range days {
		data.Usage = append(data.Usage, exportedUsage{day.Day, day.Requests})
	}
	sessions, err := p.sessions.Of(v.Context(), acc)
	if err != nil {
		return nil, err
	}
	for _, session := range sessions {
		data.Sessions = append(data.Sessions, exportedSession{session.CreatedAt.UTC(), session.ExpiresAt.UTC()})
	}
	messages, err := p.confirmations.Of(v.Context(), acc)
	if err != nil {
		return nil, err
	}
	for _, message := range messages {
		one := exportedMessage{Purpose: string(message.Purpose), Email: message.Email, CreatedAt: message.CreatedAt.UTC(), UsedAt: message.UsedAt}
		if message.UsedAt != nil {
			one.Network = message.Sender
		}
		data.Messages = append(data.Messages, one)
	}
	if data.Webhooks, err = p.gatherHooks(v); err != nil {
		return nil, err
	}
	row, err := p.Billing.Customer(v.Context(), acc)
	if err != nil {
		return nil, err
	}
	if row != nil {
		data.Billing = &exportedBilling{row.ID, row.Email, row.Subscription, row.Status, row.PeriodEnd, row.Cancels}
	}
	return data, nil
}
