package server

import (
	"context"
	"time"

	"palmares/ent"
	"palmares/ent/minute"
	"palmares/ent/release"
	"palmares/internal/catalog/journal"
	"palmares/internal/core/edge"
)

// newPurger returns what purges a cache in front, or nil. Releases that were published
// while no server was running are purged when this one starts.
func newPurger(ctx context.Context, cfg Config, e *engine) (*edge.Purger, error) {
	purger := edge.NewPurger(cfg.Edge, e.changedKeys, cfg.Log)
	served := e.release.Load()
	if purger == nil || served.ID == 0 {
		return purger, nil
	}
	before, err := e.lastServed(ctx)
	if err == nil && before < served.ID {
		purger.Release(before, served.ID)
	}
	return purger, err
}

// purgeSlack is how long after its publication a release is assumed to be purged by the
// servers that were running. It is longer than they try to.
const purgeSlack = 3 * time.Minute

// lastServed returns the newest release that was certainly purged, if a server was
// running when it was published, and 0 if there is none.
func (e *engine) lastServed(ctx context.Context) (int, error) {
	last, err := e.store.Read.Minute.Query().Order(ent.Desc(minute.FieldID)).FirstID(ctx)
	if err != nil {
		return 0, ignoreNotFound(err)
	}
	up := time.Unix(int64(last)*60, 0).Add(-purgeSlack)
	number, err := e.store.Read.Release.Query().Where(release.ImportedAtLT(up)).Order(ent.Desc(release.FieldID)).FirstID(ctx)
	return number, ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if ent.IsNotFound(err) {
		return nil
	}
	return err
}

// changedKeys returns the keys of what releases changed, except those of whole releases.
func (e *engine) changedKeys(ctx context.Context, after, upTo int) ([]string, error) {
	// A tool has at most three entries in a release.
	tools, categories, ok, err := journal.Changed(ctx, e.store.Read.JournalEntry, after, upTo, 3*edge.MaxChanged)
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
