package portal

import (
	"encoding/json"
	"math"
	"time"

	"palmares/ent"
	"palmares/internal/notify/webhook"
)

// maxExportedAttempts per endpoint makes an export fit into the server's memory.
const maxExportedAttempts = 2_000

// exported is all data that is stored about an account, for its owner.
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

// exportedMessage is an email of the last day; older ones are not stored. The
// network is included only if the email was used: otherwise somebody else may
// have requested it.
type exportedMessage struct {
	Purpose   string     `json:"purpose"`
	Email     string     `json:"email"`
	CreatedAt time.Time  `json:"created_at"`
	UsedAt    *time.Time `json:"used_at"`
	Network   string     `json:"network,omitempty"`
}

// exportedEndpoint has no secret, which is not personal data.
type exportedEndpoint struct {
	ID           int               `json:"id"`
	URL          string            `json:"url"`
	Types        []string          `json:"types"`      // all if empty
	Categories   []string          `json:"categories"` // all if empty
	State        string            `json:"state"`
	Why          string            `json:"why,omitempty"`
	CreatedAt    time.Time         `json:"created_at"`
	Attempts     []exportedAttempt `json:"attempts"`
	MoreAttempts bool              `json:"more_attempts,omitempty"`
}

type exportedAttempt struct {
	Event     string    `json:"event"`
	Type      string    `json:"type"`
	Number    int       `json:"number"`
	At        time.Time `json:"at"`
	Status    int       `json:"status"`
	TookMS    int       `json:"took_ms"`
	Answer    string    `json:"answer"`
	Delivered bool      `json:"delivered"`
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
	data, err := p.exportData(v)
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

func (p *Portal) exportData(v *visit) (*exported, error) {
	ctx, acc := v.Context(), v.account
	keys, err := p.accounts.Keys(ctx, acc)
	if err != nil {
		return nil, err
	}
	days, err := p.accounts.Usage(ctx, acc, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	sessions, err := p.sessions.List(ctx, acc)
	if err != nil {
		return nil, err
	}
	messages, err := p.confirmations.List(ctx, acc)
	if err != nil {
		return nil, err
	}
	endpoints, err := p.Webhooks.List(ctx, acc)
	if err != nil {
		return nil, err
	}
	customer, err := p.Billing.Customer(ctx, acc)
	if err != nil {
		return nil, err
	}
	data := &exported{
		Account: exportedAccount{acc.Email, string(acc.Plan), acc.CreatedAt.UTC()},
		Keys: convert(keys, func(k *ent.APIKey) exportedKey {
			return exportedKey{k.ID, k.Name, k.CreatedAt.UTC(), k.LastUsedAt, k.RevokedAt}
		}),
		Usage:    convert(days, func(u *ent.Usage) exportedUsage { return exportedUsage{u.Day, u.Requests} }),
		Sessions: convert(sessions, func(s *ent.Session) exportedSession { return exportedSession{s.CreatedAt.UTC(), s.ExpiresAt.UTC()} }),
		Messages: convert(messages, exportMessage),
		Webhooks: []exportedEndpoint{},
	}
	for _, e := range endpoints {
		attempts, more, err := p.Webhooks.Attempts(ctx, e, webhook.AttemptsQuery{Limit: maxExportedAttempts})
		if err != nil {
			return nil, err
		}
		data.Webhooks = append(data.Webhooks, exportedEndpoint{
			e.ID, e.URL, e.Types, e.Categories, string(e.State), e.DisabledReason, e.CreatedAt.UTC(), convert(attempts, exportAttempt), more,
		})
	}
	if customer != nil {
		data.Billing = &exportedBilling{customer.ID, customer.Email, customer.Subscription, customer.Status, customer.PeriodEnd, customer.Cancels}
	}
	return data, nil
}

func exportMessage(m *ent.Confirmation) exportedMessage {
	message := exportedMessage{Purpose: string(m.Purpose), Email: m.Email, CreatedAt: m.CreatedAt.UTC(), UsedAt: m.UsedAt}
	if m.UsedAt != nil {
		message.Network = m.Sender
	}
	return message
}

func exportAttempt(a *ent.Attempt) exportedAttempt {
	return exportedAttempt{eventID(a.Event), a.Type, a.Number, a.At.UTC(), a.Status, a.TookMs, a.Answer, a.Delivered}
}

// convert never returns nil, which JSON would encode as null.
func convert[From, To any](rows []From, to func(From) To) []To {
	converted := make([]To, 0, len(rows))
	for _, row := range rows {
		converted = append(converted, to(row))
	}
	return converted
}
