package main

import "palmares/ent"

// publish makes a new release the one that is served, or tells that it has to
// be tried again.
func (p *program) publish(release *ent.Release) bool {
	last := p.health.release.Load()
	switch {
	case last != nil && last.ID == release.ID && last.ImportedAt.Equal(release.ImportedAt):
		return true
	case last != nil && release.ID <= last.ID: // a backup was restored
		p.answers.Restart(release.ID)
		p.executor.EndStreams()
	default:
		if err := p.answers.Renew(release.ID); err != nil {
			p.log.Warn("a new release waits: the database fails", "release", release.ID, "cause", err)
			return false
		}
	}
	p.health.release.Store(release)
	p.executor.Announce()
	p.log.Info("new release", "release", release.ID, "updated_at", release.FeedDate)
	return true
}
