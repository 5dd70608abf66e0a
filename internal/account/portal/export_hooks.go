package portal

import (
	"time"

	"palmares/ent"
	"palmares/internal/notify/webhook"
)

// exportedEndpoint is where events are sent to. What they are signed with is
// no data of a person's, and was shown to its owner.
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

// exportedAttempt is one of the last 30 days'; older ones are not kept.
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

// mostExported is how many attempts at an endpoint a download has, newest
// first: it must not become larger than a server can hold.
const mostExported = 2_000

func (p *Portal) gatherHooks(v *visit) ([]exportedEndpoint, error) {
	endpoints, err := p.Hooks.List(v.Context(), v.account)
	if err != nil {
		return nil, err
	}
	hooks := []exportedEndpoint{}
	for _, e := range endpoints {
		attempts, older, err := p.Hooks.Attempts(v.Context(), e, webhook.AttemptsQuery{Most: mostExported})
		if err != nil {
			return nil, err
		}
		hooks = append(hooks, exportHook(e, attempts, older))
	}
	return hooks, nil
}

func exportHook(e *ent.Endpoint, attempts []*ent.Attempt, older bool) exportedEndpoint {
	hook := exportedEndpoint{
		ID: e.ID, URL: e.URL, Types: e.Types, Categories: e.Categories, State: string(e.State), Why: e.Why, CreatedAt: e.CreatedAt.UTC(),
		Attempts: []exportedAttempt{}, MoreAttempts: older,
	}
	for _, a := range attempts {
		hook.Attempts = append(hook.Attempts, exportedAttempt{eventID(a.Event), a.Type, a.Number, a.At.UTC(), a.Status, a.TookMs, a.Answer, a.Delivered})
	}
	return hook
}
