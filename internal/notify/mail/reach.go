package mail

import "context"

// Reached is how far one comes with the mail server.
type Reached struct {
	Encrypted bool
	SignedIn  bool // false also where there is no password
}

// Reach goes to the mail server, up to where a letter would be handed over,
// and leaves again. Its error is a *problem.Problem.
func (m *Mailer) Reach(ctx context.Context) (Reached, error) {
	ctx, cancel := context.WithTimeout(ctx, m.limit)
	defer cancel()
	client, got, hangUp, err := m.connect(ctx)
	if err != nil {
		return got, err
	}
	defer hangUp()
	_ = client.Quit()
	return got, nil
}

// HasPassword tells whether we sign in at the mail server.
func (m *Mailer) HasPassword() bool { return m.server != nil && m.server.user != "" }
