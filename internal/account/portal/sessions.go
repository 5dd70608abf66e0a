package portal

// endSessions does what ends some sessions of the visitor's account, and makes
// it true here at once for what their browsers call the API with. A key that
// goes on is only asked for anew.
func (p *Portal) endSessions(v *visit, end func() error) error {
	var keys []string
	if v.account != nil {
		sessions, err := p.sessions.Of(v.Context(), v.account)
		if err != nil {
			return err
		}
		for _, session := range sessions {
			if session.KeyID != nil {
				keys = append(keys, *session.KeyID)
			}
		}
	}
	if err := end(); err != nil {
		return err
	}
	p.Keyring.Forget(keys...)
	return nil
}
