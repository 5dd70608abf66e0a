package main

import (
	"context"
	"net/http"
	"time"

	"palmares/ent"
	"palmares/ent/minute"
	"palmares/ent/release"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/edge"
)

// addEdgeKeys adds keys to public responses.
func (p *program) addEdgeKeys(next http.Handler) http.Handler {
	return edge.Middleware(p.cache.Newest, p.settings.Edge.CacheTag)(next)
}

// openPurger prepares purges. Releases that were published while no server was running
// are purged when this one starts.
func (p *program) openPurger(ctx context.Context) error {
	p.purger = edge.NewPurger(p.settings.purgeEndpoint(), p.changedKeys, p.log)
	served := p.health.release.Load()
	if p.purger == nil || served.ID == 0 {
		return nil
	}
	before, err := p.lastServed(ctx)
	if err == nil && before < served.ID {
		p.purger.Release(before, served.ID)
	}
	return err
}

// purgeSlack is how long after its publication a release is assumed to be purged by the
// servers that were running. It is longer than they try to.
const purgeSlack = 3 * time.Minute

// lastServed returns the newest release that was certainly purged, if a server was
// running when it was published, and 0 if there is none.
func (p *program) lastServed(ctx context.Context) (int, error) {
	last, err := p.store.Read.Minute.Query().Order(ent.Desc(minute.FieldID)).FirstID(ctx)
	if err != nil {
		return 0, ignoreNotFound(err)
	}
	up := time.Unix(int64(last)*60, 0).Add(-purgeSlack)
	number, err := p.store.Read.Release.Query().Where(release.ImportedAtLT(up)).Order(ent.Desc(release.FieldID)).FirstID(ctx)
	return number, ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if ent.IsNotFound(err) {
		return nil
	}
	return err
}

// changedKeys returns the keys of what releases changed, except those of whole releases.
func (p *program) changedKeys(ctx context.Context, after, upTo int) ([]string, error) {
	// A tool has at most three entries in a release.
	tools, categories, ok, err := journal.Changed(ctx, p.store.Read.JournalEntry, after, upTo, 3*edge.MaxChanged)
	if err != nil || !ok {
		return []string{edge.All}, err
	}
	var keys []string
	for _, slug := range tools {
		keys = append(keys, edge.Tool(slug))
	}
	for _, slug := range categories {
		keys = append(keys, edge.Category(slug))
	}
	return keys, nil
}
