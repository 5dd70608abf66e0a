package release

// Names are the names of everything in a release.
type Names struct{}

func (r *Release) newNames() *Names { return nil }
